package replica

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// fingerprint stands where vLLM names its version and configuration.
const fingerprint = "vllm-0.32.0-sim"

// stream answers with server-sent events. The headers go out at once, long before the first token, as
// vLLM's do. The events are put together by hand: a stream has thousands, and only filler goes into them.
func (j *job) stream(w http.ResponseWriter, r *http.Request, f form) {
	h := w.Header()
	h.Set("content-type", "text/event-stream; charset=utf-8")
	rc := http.NewResponseController(w)
	buf := f.open(nil)
	w.Write(buf)
	rc.Flush() // a failed write or flush means that the client left; wait sees that
	sent := make([]int, len(j.seqs))
	for open := len(j.seqs); open > 0; {
		j.wait(r)
		buf = buf[:0]
		for i, s := range j.seqs {
			n := int(s.tokens.Load())
			if n == sent[i] {
				continue
			}
			if sent[i] == 0 {
				buf = f.first(buf, i)
			}
			buf = f.chunk(buf, i, sent[i], n)
			sent[i] = n
			if n == s.Output {
				open--
			}
		}
		if open == 0 {
			buf = f.end(buf)
		}
		if len(buf) > 0 {
			w.Write(buf)
			rc.Flush()
		}
	}
}

// head opens an event, up to the list of choices.
func (j *job) head(buf []byte) []byte {
	buf = append(buf, `data: {"id":"`...)
	buf = append(buf, j.id...)
	if j.kind == chat {
		buf = append(buf, `","object":"chat.completion.chunk","created":`...)
	} else {
		buf = append(buf, `","object":"text_completion","created":`...)
	}
	buf = strconv.AppendInt(buf, j.created, 10)
	buf = append(buf, `,"model":`...)
	buf = append(buf, j.model...)
	return append(buf, `,"choices":[`...)
}

func (j *job) open(buf []byte) []byte { return buf }

// first gives the role, which only a chat has.
func (j *job) first(buf []byte, i int) []byte {
	if j.kind != chat {
		return buf
	}
	buf = append(j.head(buf), `{"index":`...)
	buf = strconv.AppendInt(buf, int64(i), 10)
	return append(buf, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}`+"\n\n"...)
}

// chunk is the event that carries tokens from up to but not including to of choice i.
func (j *job) chunk(buf []byte, i, from, to int) []byte {
	buf = append(j.head(buf), `{"index":`...)
	buf = strconv.AppendInt(buf, int64(i), 10)
	if j.kind == chat {
		buf = append(buf, `,"delta":{"content":"`...)
		buf = append(answer(buf, from, to), `"},"logprobs":null,"finish_reason":`...)
	} else {
		buf = append(buf, `,"text":"`...)
		buf = append(answer(buf, from, to), `","logprobs":null,"finish_reason":`...)
	}
	if to < j.seqs[i].Output {
		buf = append(buf, `null`...)
	} else {
		buf = append(buf, '"')
		buf = append(buf, j.seqs[i].reason...)
		buf = append(buf, '"')
	}
	if j.kind != chat {
		return append(buf, `,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}`+"\n\n"...)
	}
	if to == j.seqs[i].Output {
		buf = append(buf, `,"stop_reason":null`...)
	}
	return append(buf, `,"token_ids":null}]}`+"\n\n"...)
}

func (j *job) end(buf []byte) []byte {
	if j.includeUsage {
		counts, _ := json.Marshal(j.usage()) // whole numbers always have a JSON form
		buf = append(j.head(buf), `],"usage":`...)
		buf = append(buf, counts...)
		buf = append(buf, `,"system_fingerprint":"`+fingerprint+`"}`+"\n\n"...)
	}
	return append(buf, "data: [DONE]\n\n"...)
}
