package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
)

// maxBody bounds what is read of a request: above the 32 MiB that weir lets through by default, so that a
// test sees who refused.
const maxBody = 64 << 20

// lastRequest is what GET /debug/last shows. The hash is made when asked for: under load nobody asks.
type lastRequest struct {
	method, path string
	header       http.Header
	body         []byte
}

// readBody reads the whole body and keeps the request as the last one. On failure it has answered.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	limited := http.MaxBytesReader(w, r.Body, maxBody)
	var err error
	if n := r.ContentLength; n > 0 && n <= maxBody {
		body = make([]byte, n)
		_, err = io.ReadFull(limited, body)
	} else {
		body, err = io.ReadAll(limited)
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		writeError(w, apiError{http.StatusRequestEntityTooLarge, "the body exceeds 64 MiB", typeBadRequest, ""})
		return nil, false
	case err != nil:
		writeError(w, apiError{http.StatusBadRequest, "the body ended early: " + err.Error(), typeBadRequest, ""})
		return nil, false
	}
	s.last.Store(&lastRequest{r.Method, r.URL.RequestURI(), r.Header, body})
	return body, true
}

type digest struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

func digestOf(body []byte) digest {
	sum := sha256.Sum256(body)
	return digest{hex.EncodeToString(sum[:]), len(body)}
}

// serveEcho answers any other path with the hash of its body.
func (s *Server) serveEcho(w http.ResponseWriter, r *http.Request) {
	if body, ok := s.readBody(w, r); ok {
		writeJSON(w, http.StatusOK, digestOf(body))
	}
}

// serveLast shows the last request that had its body read.
func (s *Server) serveLast(w http.ResponseWriter) {
	last := s.last.Load()
	if last == nil {
		writeError(w, apiError{http.StatusNotFound, "no request yet", "NotFoundError", ""})
		return
	}
	writeJSON(w, http.StatusOK, struct {
		Method  string      `json:"method"`
		Path    string      `json:"path"`
		Headers http.Header `json:"headers"`
		digest
	}{last.method, last.path, last.header, digestOf(last.body)})
}
