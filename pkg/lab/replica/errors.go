package replica

import (
	"encoding/json"
	"net/http"
)

// typeBadRequest is the type of vLLM's errors about a request's values; the body's syntax and missing
// fields have "Bad Request" (both as vLLM 0.32 writes them).
const typeBadRequest = "BadRequestError"

// apiError is an error as vLLM answers it.
type apiError struct {
	code    int
	message string
	kind    string
	param   string // "" goes out as null
}

func (e *apiError) Error() string { return e.message }

func writeError(w http.ResponseWriter, e apiError) {
	type object struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	o := object{e.message, e.kind, nil, e.code}
	if e.param != "" {
		o.Param = &e.param
	}
	writeJSON(w, e.code, map[string]object{"error": o})
}

// writeJSON answers with v. A failed write means that the client left, which needs no handling here.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(status)
	w.Write(body)
}
