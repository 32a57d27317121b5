package extproc_test

import (
	"strings"
	"testing"

	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"

	"github.com/weirproxy/weir/pkg/route"
)

// eventStreams are answers in events, as servers spell them.
var eventStreams = map[string]string{
	"usage":    `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":7}}` + "\n\ndata: [DONE]\n\n",
	"no usage": `data: {"choices":[{"delta":{"content":"a weir"}}]}` + "\n\n" + `data: {"choices":[{"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
	"CRLF":     "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\r\n\r\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\r\n\r\ndata: [DONE]\r\n\r\n",
	"pings":    ": ping\n\n: ping\n\ndata: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n: ping\n\ndata: [DONE]\n\n: ping\n\n",
}

// TestLeaseEndsWithTheStream is req_llm#781: however the events of an answer are cut, and whatever in them looks like an
// end, the lease comes back once, when the stream ends. weir reads no answer: where a configuration sends it one, every
// byte goes back as it came.
func TestLeaseEndsWithTheStream(t *testing.T) {
	for _, answers := range []filterv3.ProcessingMode_BodySendMode{filterv3.ProcessingMode_STREAMED, filterv3.ProcessingMode_FULL_DUPLEX_STREAMED} {
		eachMode(t, options{}, func(f *fake, m mode) {
			for name, events := range eventStreams {
				for _, size := range []int{1, 7, 40, len(events)} {
					for _, end := range []string{"on the last chunk", "on an empty one", "nowhere"} {
						c := f.call(m)
						c.tmpl["request_headers"].ProtocolConfig.ResponseBodyMode = answers
						c.request(chatBody)
						c.replies()
						setHeader(c.tmpl["response_headers"].GetResponseHeaders().Headers, "content-type", "text/event-stream")
						c.answer("200", endpoints[0])
						var back strings.Builder
						for rest := events; rest != ""; {
							n := min(size, len(rest))
							back.Write(c.event(rest[:n], n == len(rest) && end == "on the last chunk"))
							rest = rest[n:]
						}
						if end == "on an empty one" {
							c.event("", true)
						}
						if n := sum(f.leases()); n != 1 {
							f.t.Errorf("%s cut at %d, the end %s: %d leases before the stream's end", name, size, end, n)
						}
						if answers == filterv3.ProcessingMode_FULL_DUPLEX_STREAMED && back.String() != events {
							f.t.Errorf("%s cut at %d: %q comes back", name, size, back.String())
						}
						c.close()
						if d := f.one(); d.Outcome != route.Answered || sum(f.leases()) != 0 {
							f.t.Errorf("%s cut at %d, the end %s: %v, leases %v", name, size, end, d.Outcome, f.leases())
						}
					}
				}
			}
		})
	}
}

// event sends a piece of an answer and returns what comes back of it.
func (c *call) event(text string, end bool) []byte {
	c.f.t.Helper()
	c.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
		ResponseBody: &extprocv3.HttpBody{Body: []byte(text), EndOfStream: end},
	}})
	return c.replies().GetResponseBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetBody()
}
