package replica

import (
	"errors"
	"testing"
)

// FuzzBody: any body becomes a job whose sequences the model takes, or an error in vLLM's form.
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]},{"role":"tool","content":[]}],"tools":[1]}`,
		`{"messages":[{"content":[{"type":"text","text":null},{"type":"image_url","image_url":{"url":"data:"}}]}],"n":2,"stream":true}`,
		`{"prompt":["a",""],"max_tokens":9007199254740993}`, `{"prompt":[[1],[]]}`, `{"prompt":[4294967295]}`, `{"prompt":{}}`,
		`{"messages":[{"content":7}]}`, `{"messages":[null]}`, `null`, `[]`,
		`{"system":[{"type":"text","text":"s"}],"max_tokens":1,"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"r"}]},{"type":"image"}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","input":{}}]}]}`,
		`{"instructions":"i","input":[{"role":"user","content":[{"type":"input_text","text":"t"}]},{"type":"function_call","name":"f"},{"type":"function_call_output","output":"o"}]}`,
		`{"input":"x","previous_response_id":"resp_1"}`, `{"input":[[1,2],[3]],"encoding_format":"base64"}`, `{"input":[null]}`, `{"system":7}`, "{\"prompt\":\"a\xffb\"}", `{"prompt":"x","max_tokens":1e400}`,
	} {
		for k := completions; k <= embeddings; k++ {
			f.Add([]byte(body), uint8(k))
		}
	}
	cfg := Config{Model: "m", Speed: 1, MaxModelLen: 5000}
	cfg.Profile.KVTokens, cfg.Profile.MaxBatch, cfg.Profile.MaxSeqs, cfg.Profile.Base = 10_000, 100, 10, 1
	s, err := New(cfg)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, of uint8) {
		k := kind(of % uint8(embeddings+1))
		req, err := s.parse(body, k)
		var j *job
		if err == nil {
			j, err = s.newJob(req, k)
		}
		var api *apiError
		if err != nil {
			if !errors.As(err, &api) || api.code < 400 || api.code > 499 || api.message == "" {
				t.Fatalf("error %#v", err)
			}
			return
		}
		for _, q := range j.seqs {
			if q.Prompt < 1 || q.Output < 1 || q.Prompt+q.Output > cfg.MaxModelLen || len(q.Hashes) != (q.Prompt+q.Output)/16 {
				t.Fatalf("%d prompt and %d answer tokens, %d hashes", q.Prompt, q.Output, len(q.Hashes))
			}
		}
	})
}
