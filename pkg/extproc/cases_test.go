package extproc_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	filterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/weirproxy/weir/pkg/prompt"
	"github.com/weirproxy/weir/pkg/route"
)

// eachMode runs a test in both body modes, each with a fake of its own.
func eachMode(t *testing.T, o options, test func(f *fake, m mode)) { eachOf(t, modes, o, test) }

// everyMode runs a test in those too that weir does not ask for.
func everyMode(t *testing.T, o options, test func(f *fake, m mode)) {
	eachOf(t, append(modes, others...), o, test)
}

func eachOf(t *testing.T, all []mode, o options, test func(f *fake, m mode)) {
	for _, m := range all {
		t.Run(string(m), func(t *testing.T) {
			withFake(t, o, func(f *fake) { test(f, m) })
		})
	}
}

const chatBody = `{"model": "m", "messages": [{"role": "user", "content": "What is a weir?"}], "max_tokens": 64}`

// TestAnyBodyOnAnyPathIsRouted is gateway-api-inference-extension#790: a body that does not suit its path is the replica's to judge.
func TestAnyBodyOnAnyPathIsRouted(t *testing.T) {
	bodies := map[string]string{
		"chat": `{"model":"m","temperature":0,"messages":[{"role":"user","content":"hi"}]}`, "completions": `{"model":"m","prompt":"hi"}`,
		"array": `[1, 2]`, "cut": `{"model":"m","mess`, "text": "hello", "binary": "\x00\xff{",
	}
	eachMode(t, options{}, func(f *fake, m mode) {
		for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/", "//v1/%63ompletions?x=1", "*", ""} {
			for name, body := range bodies {
				c := f.call(m)
				c.request(body, ":path", path)
				c.replies()
				if c.check.pick == "" {
					f.t.Errorf("%s at %q: no pick", name, path)
				}
				c.close()
			}
		}
	})
}

// TestRequestWithoutBody is models-as-a-service#1095: no body phase ran, and the answer's messages come
// all the same. Other streams go on.
func TestRequestWithoutBody(t *testing.T) {
	everyMode(t, options{}, func(f *fake, m mode) {
		other := f.call(m)
		other.headers(false)
		for method, path := range map[string]string{"GET": "/v1/models", "HEAD": "/v1/models", "OPTIONS": "/v1/chat/completions", "DELETE": "/v1/responses/1", "POST": "/v1/chat/completions"} {
			c := f.call(m)
			c.headers(true, ":method", method, ":path", path, "content-length", "0")
			c.replies()
			if c.check.pick == "" {
				f.t.Errorf("%s %s: no pick", method, path)
			}
			c.answer("200", endpoints[0])
			c.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseBody{
				ResponseBody: &extprocv3.HttpBody{Body: []byte(`{"data": []}`), EndOfStream: true},
			}})
			c.replies()
			c.close()
			if d := f.one(); d.Outcome != route.Answered || d.Status != 200 {
				f.t.Errorf("%s %s: %v, status %d", method, path, d.Outcome, d.Status)
			}
		}
		other.finish(chatBody)
		other.close()
		f.take()
	})
}

// finish goes on with a body after the headers.
func (c *call) finish(body string) {
	c.f.t.Helper()
	if c.mode != streamed {
		c.replies()
	}
	c.body(body, true)
	c.replies()
}

// TestBodyIsNotRewritten is llm-d-router#2518: numbers, escapes, duplicate keys and order stay as they are.
// In other modes a reply has no body at all (the checker), in FULL_DUPLEX_STREAMED the same bytes come back.
func TestBodyIsNotRewritten(t *testing.T) {
	body := `{"model":"m","prompt":"x","seed":9007199254740993,"z":1.0,"a":1e400,"u":"\u2028","dup":1,"dup":2}` + "\r\n \xff"
	for _, size := range []int{0, 1, 100, 62<<10 - 1, 62 << 10, 62<<10 + 1, 1 << 20} {
		everyMode(t, options{}, func(f *fake, m mode) {
			text := strings.Repeat(body, size/len(body)+1)[:size]
			c := f.call(m)
			c.request(text)
			c.replies()
			if string(c.check.echo) != text && m == streamed {
				f.t.Errorf("%d bytes of %d come back, or others", len(c.check.echo), size)
			}
			c.close()
		})
	}
}

// TestReplyOrder is gateway-api-inference-extension PR#3033: in FULL_DUPLEX_STREAMED the answer to the headers, with the pick, comes
// after the whole body and before its echo; in BUFFERED one ordinary reply. One binary does both.
func TestReplyOrder(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(streamed)
		c.headers(false)
		c.body(`{"model":"m",`, false)
		c.body(`"prompt":"x"}`, false)
		synctest.Wait()
		if n := f.leases(); sum(n) != 0 {
			f.t.Errorf("leases %v before the body's end", n)
		}
		c.body("", true)
		if first := c.reply(); replyKind(first) != "request_headers" || c.check.pick == "" {
			f.t.Errorf("the first reply is %v", first)
		}
		if second := c.reply(); second.GetRequestBody().GetResponse().GetBodyMutation().GetStreamedResponse().GetEndOfStream() != true {
			f.t.Errorf("the second reply is %v", second)
		}
		c.close()

		b := f.call(buffered)
		b.headers(false)
		if first := b.reply(); replyKind(first) != "request_headers" || b.check.pick != "" {
			f.t.Errorf("BUFFERED: the first reply is %v", first)
		}
		b.body(`{"model":"m","prompt":"x"}`, true)
		if second := b.reply(); replyKind(second) != "request_body" || b.check.pick == "" {
			f.t.Errorf("BUFFERED: the second reply is %v", second)
		}
		b.close()
	})
}

// TestHeaderValueFields is envoy#31555: a value is in raw_value or in value, and weir writes one (checker).
func TestHeaderValueFields(t *testing.T) {
	fields := map[string]func(name, value string) *corev3.HeaderValue{
		"raw_value": func(n, v string) *corev3.HeaderValue { return &corev3.HeaderValue{Key: n, RawValue: []byte(v)} },
		"value":     func(n, v string) *corev3.HeaderValue { return &corev3.HeaderValue{Key: n, Value: v} },
		"both": func(n, v string) *corev3.HeaderValue {
			return &corev3.HeaderValue{Key: n, RawValue: []byte(v), Value: "something else"}
		},
	}
	for name, field := range fields {
		withFake(t, options{}, func(f *fake) {
			for encoding, want := range map[string]prompt.Reason{"": prompt.ReasonNone, "of its own": prompt.ReasonEncoding} {
				c := f.call(buffered)
				m := c.tmpl["request_headers"]
				m.GetRequestHeaders().Headers.Headers = []*corev3.HeaderValue{
					field(":path", "/v1/chat/completions"), field("x-weir-class", "bulk"), field("content-encoding", encoding),
				}
				if encoding == "" {
					m.GetRequestHeaders().Headers.Headers = m.GetRequestHeaders().Headers.Headers[:2]
				}
				c.send(m)
				c.replies()
				c.body(chatBody, true)
				c.replies()
				h := c.tmpl["response_headers"].GetResponseHeaders()
				h.Headers.Headers = []*corev3.HeaderValue{field(":status", "418")}
				c.answerTemplate()
				c.close()
				d := f.one()
				if d.Class != "bulk" || d.Prompt.API != prompt.APIChat || d.Prompt.Reason != want || d.Status != 418 {
					f.t.Errorf("%s: class %s, API %v, reason %v, status %d", name, d.Class, d.Prompt.API, d.Prompt.Reason, d.Status)
				}
			}
		})
	}
}

// answerTemplate sends the response headers as they stand in the template.
func (c *call) answerTemplate() {
	c.f.t.Helper()
	c.send(c.tmpl["response_headers"])
	c.replies()
}

// TestClientDestination is dynamo PR#8783 and agentgateway PR#3144: a client's own destination is
// overwritten by the pick, and taken away in the first reply of any request that goes on without one.
func TestClientDestination(t *testing.T) {
	evil := []string{pickHeader, "169.254.169.254:80", "+" + pickHeader, "10.9.9.9:1", "x-envoy-original-dst-host", "10.9.9.9:1"}
	eachMode(t, options{}, func(f *fake, m mode) {
		picked := f.call(m)
		picked.request(chatBody, evil...)
		picked.replies()
		get := f.call(m)
		get.headers(true, evil...)
		get.replies()
		for _, c := range []*call{picked, get} {
			if c.check.pick == "" { // the checker holds that it overwrites and names replicas only
				f.t.Error("no pick")
			}
			c.close()
		}
		strange := f.call(m)
		setCluster(strange.tmpl["request_headers"], "no-pool-of-weir")
		strange.headers(false, evil...)
		if m == streamed {
			strange.body(chatBody, true)
		}
		if got := strange.reply().GetRequestHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(); fmt.Sprint(got) != "["+pickHeader+"]" {
			f.t.Errorf("unknown cluster: weir removes %v in its first reply", got)
		}
		if m == buffered {
			strange.body(chatBody, true)
		}
		strange.replies()
		strange.close()
		if n := outcomes(f.take()); n[route.NoPool] != 1 {
			f.t.Errorf("outcomes %v", n)
		}
	})
}

func setCluster(m *extprocv3.ProcessingRequest, name string) {
	m.Attributes["envoy.filters.http.ext_proc"].Fields["xds.cluster_name"] = structpb.NewStringValue(name)
}

// TestBufferedRemovesDestinationAtHeaders holds that BUFFERED does not leave a client's destination in place until the
// body is there, for a request that then goes on past weir.
func TestBufferedRemovesDestinationAtHeaders(t *testing.T) {
	withFake(t, options{}, func(f *fake) {
		c := f.call(buffered)
		c.headers(false, pickHeader, "10.9.9.9:1")
		if got := c.reply().GetRequestHeaders().GetResponse().GetHeaderMutation().GetRemoveHeaders(); len(got) != 1 || got[0] != pickHeader {
			f.t.Errorf("removed: %v", got)
		}
		c.close()
		f.take()
	})
}

// TestEveryModeIsAnswered is envoy#38553: whatever modes a configuration asks for, each phase gets a reply
// of its own kind, and a request whose body comes too late for a pick is picked at the headers.
func TestEveryModeIsAnswered(t *testing.T) {
	for name, body := range filterv3.ProcessingMode_BodySendMode_value {
		if body == int32(filterv3.ProcessingMode_FULL_DUPLEX_STREAMED) {
			continue // TestRecordedStreams
		}
		t.Run(name, func(t *testing.T) {
			withFake(t, options{}, func(f *fake) {
				c := f.call(buffered)
				c.tmpl["request_headers"].ProtocolConfig.RequestBodyMode = filterv3.ProcessingMode_BodySendMode(body)
				c.headers(false)
				c.replies()
				for _, end := range []bool{false, true} {
					c.body(chatBody, end)
					c.replies()
				}
				c.send(c.tmpl["request_trailers"])
				c.replies()
				c.answer("200", endpoints[0])
				c.send(&extprocv3.ProcessingRequest{Request: &extprocv3.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extprocv3.HttpTrailers{}}})
				c.replies()
				if c.check.pick == "" {
					f.t.Error("no pick")
				}
				c.close()
				if d := f.one(); d.Outcome != route.Answered {
					f.t.Errorf("outcome %v", d.Outcome)
				}
			})
		})
	}
}

// TestNoReplicaIsRefused is envoy#38553 where there is nothing to pick: an answer of weir's own and no pick.
func TestNoReplicaIsRefused(t *testing.T) {
	eachMode(t, options{none: true}, func(f *fake, m mode) {
		c := f.call(m)
		c.request(chatBody, pickHeader, "10.9.9.9:1")
		c.replies()
		if r := c.check.refusal; r.GetStatus().GetCode() != 503 || c.check.pick != "" || errorCode(r) != "no_replica" {
			f.t.Errorf("refusal %v, pick %q", r, c.check.pick)
		}
		c.close()
		f.take()
	})
}

// errorCode returns the code of an OpenAI error object.
func errorCode(r *extprocv3.ImmediateResponse) string {
	var object struct{ Error struct{ Code string } }
	if err := json.Unmarshal(r.GetBody(), &object); err != nil {
		return err.Error()
	}
	return object.Error.Code
}
