package extproc

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirproxy/weir/pkg/route"
)

// TestRefusals holds status, body and headers of every refusal in every dialect.
func TestRefusals(t *testing.T) {
	tested := 0
	for o, want := range map[route.Outcome]struct {
		status            int
		openAI, anthropic string
	}{
		route.Late:      {429, "rate_limit_error", "rate_limit_error"},
		route.Shed:      {429, "rate_limit_error", "rate_limit_error"},
		route.Full:      {429, "rate_limit_error", "rate_limit_error"},
		route.Stopped:   {503, "server_error", "api_error"},
		route.TooLarge:  {413, "invalid_request_error", "request_too_large"},
		route.NoMemory:  {503, "server_error", "api_error"},
		route.Tunnel:    {501, "invalid_request_error", "invalid_request_error"},
		route.NoReplica: {503, "server_error", "api_error"},
	} {
		tested++
		for _, of := range []dialect{plainText, openAI, anthropic} {
			d := route.Unrouted("p", time.Now(), o)
			d.Retry = 1200 * time.Millisecond
			r := refusal(d, of).GetImmediateResponse()
			headers := map[string]string{}
			for _, h := range r.GetHeaders().GetSetHeaders() {
				headers[h.Header.Key] = string(h.Header.RawValue)
			}
			if int(r.Status.Code) != want.status || headers["retry-after"] != "2" || headers["retry-after-ms"] != "1200" || r.Details != "weir_"+o.String() {
				t.Errorf("%v: %v, headers %v", o, r, headers)
			}
			var body struct {
				Type  string
				Error struct{ Message, Type, Code string }
			}
			err := json.Unmarshal(r.Body, &body)
			switch e := body.Error; {
			case of == plainText && err != nil && headers["content-type"] == "text/plain; charset=utf-8" && len(r.Body) > 0:
			case err != nil || e.Message == "" || headers["content-type"] != "application/json":
				t.Errorf("%v, dialect %d: %v in %s", o, of, err, r.Body)
			case of == openAI && (e.Type != want.openAI || e.Code != o.String() || body.Type != ""),
				of == anthropic && (e.Type != want.anthropic || e.Code != "" || body.Type != "error"):
				t.Errorf("%v, dialect %d: %s", o, of, r.Body)
			}
		}
	}
	if tested != len(refusals) {
		t.Errorf("%d of %d refusals are tested", tested, len(refusals))
	}
}

func TestDialect(t *testing.T) {
	for _, c := range []struct {
		path    string
		version bool
		want    dialect
	}{
		{"/v1/chat/completions", false, openAI},
		{"/v1/completions?x=1", false, openAI},
		{"/team/v1/embeddings", false, openAI},
		{"/v1/responses", false, openAI},
		{"/v1/responses/resp_1/cancel", false, openAI},
		{"/v1/models", false, openAI},
		{"/v1/audio/transcriptions", false, openAI},
		{"/v1//chat/%63ompletions/", false, openAI},
		{"/%761/models", false, openAI},
		{"/v1/rerank", false, openAI},
		{"/rerank", false, openAI},
		{"/score/?x", false, openAI},
		{"//pooling", false, openAI},
		{"/team/v2/embed", false, openAI},
		{"/inference/v1/generate", false, openAI},
		{"/v1/messages", false, anthropic},
		{"/v1/messages/count_tokens", false, anthropic},
		{"/v1/messages/batches/msgbatch_1", false, anthropic},
		{"//v1//messages", false, anthropic},
		{"/v1%2Fmessages", false, anthropic},
		{"/v1%2Fmessages/%zz", false, anthropic}, // a bad escape stays, the good one is decoded
		{"/v1/%6dessages/", false, anthropic},
		{"/v1/%6dessages/render", false, anthropic},
		{"/anthropic/v1/messages?beta=true", false, anthropic},
		{"/v1/chat/completions", true, anthropic},
		{"/", true, anthropic},
		{"/v1/messagesx", false, openAI},
		{"/v1/chat/completions?x=/v1/messages", false, openAI},
		{"/v1/chat/completions#/v1/messages", false, openAI},
		{"/index.html?back=/v1/messages", false, plainText},
		{"/scores", false, plainText},
		{"/v1", false, openAI},
		{"/%zz", false, plainText},
		{"/", false, plainText},
		{"", false, plainText},
	} {
		if got := dialectOf(c.path, c.version); got != c.want {
			t.Errorf("%q, with anthropic-version %v: %d, want %d", c.path, c.version, got, c.want)
		}
	}
}
