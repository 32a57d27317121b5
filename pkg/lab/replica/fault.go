package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
)

// Fault is what is wrong with a server, as POST /fault takes it. The zero value is a healthy one. Hang, Fail
// and Drop concern every path but /metrics, which has its own switch, and the laboratory's own paths.
type Fault struct {
	Slow       float64 `json:"slow"`        // steps take this many times as long; 0 and 1 are healthy
	Hang       bool    `json:"hang"`        // accepts, never answers; running answers stand still
	Fail       float64 `json:"fail"`        // share of requests answered with FailStatus, 0 to 1
	FailStatus int     `json:"fail_status"` // 500 to 599; 0 means 503
	Drop       float64 `json:"drop"`        // share of requests whose connection is cut, 0 to 1
	Metrics    string  `json:"metrics"`     // "error": /metrics answers 500; "hang": it never answers
}

func (f *Fault) validate() error {
	var errs []error
	if !(f.Slow >= 0) {
		errs = append(errs, fmt.Errorf("fault: slow %v is below 0", f.Slow))
	}
	if !(f.Fail >= 0 && f.Fail <= 1) || !(f.Drop >= 0 && f.Drop <= 1) {
		errs = append(errs, fmt.Errorf("fault: fail %v or drop %v is no share from 0 to 1", f.Fail, f.Drop))
	}
	if f.FailStatus != 0 && (f.FailStatus < 500 || f.FailStatus > 599) {
		errs = append(errs, fmt.Errorf("fault: fail_status %d is not from 500 to 599", f.FailStatus))
	}
	if f.Metrics != "" && f.Metrics != "error" && f.Metrics != "hang" {
		errs = append(errs, fmt.Errorf("fault: metrics %q is none of error, hang", f.Metrics))
	}
	return errors.Join(errs...)
}

// SetFault replaces the server's fault as a whole. It returns an error, and changes nothing, when a value is
// out of its range. The server must be serving.
func (s *Server) SetFault(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	s.fault.Store(&f)
	s.engine.setFault(f)
	slog.Info("fault set", "name", s.cfg.Name, "fault", f)
	return nil
}

// serveFault answers GET with the fault and takes a new one by POST.
func (s *Server) serveFault(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
		dec.DisallowUnknownFields()
		var f Fault
		err := dec.Decode(&f)
		if err == nil {
			err = s.SetFault(f)
		}
		if err != nil {
			writeError(w, apiError{http.StatusBadRequest, err.Error(), typeBadRequest, ""})
			return
		}
	}
	writeJSON(w, http.StatusOK, s.fault.Load())
}

func (s *Server) serveRestart(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		writeError(w, apiError{http.StatusMethodNotAllowed, "Method Not Allowed", "MethodNotAllowedError", ""})
		return
	}
	s.engine.restart(s.fault.Load().Slow)
	slog.Info("replica restarted", "name", s.cfg.Name)
	w.WriteHeader(http.StatusOK)
}

// struck applies the fault to a request and reports whether that was all.
func (s *Server) struck(w http.ResponseWriter, r *http.Request) bool {
	f := s.fault.Load()
	if f.Hang {
		hang(r)
	}
	n := s.requests.Add(1)
	if due(n, f.Drop) {
		panic(http.ErrAbortHandler) // cuts the connection, and net/http logs nothing
	}
	if due(n, f.Fail) {
		status := f.FailStatus
		if status == 0 {
			status = http.StatusServiceUnavailable
		}
		writeError(w, apiError{status, "simulated failure", "InternalServerError", ""})
		return true
	}
	return false
}

// hang takes the request, as a busy server's socket would, and holds it until the client leaves.
func hang(r *http.Request) {
	io.Copy(io.Discard, r.Body) // net/http watches for the client's leaving only once the body is read
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// due spreads a share evenly over the numbered requests, so that a test sees the share and not a sample.
func due(n int64, share float64) bool {
	return int64(float64(n)*share) != int64(float64(n-1)*share)
}
