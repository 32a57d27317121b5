package envoy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

const chat = `{"model": "m", "messages": [{"role": "user", "content": "What is a weir?"}], "seed": 9007199254740993}`

// http2Client speaks cleartext HTTP/2 from the first byte.
var http2Client = &http.Client{Transport: &http.Transport{Protocols: func() *http.Protocols {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return p
}()}}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("content-type", "application/json")
	return req
}

// inChunks is a POST whose body has no length.
func inChunks(t *testing.T, url string, body io.Reader) *http.Request {
	t.Helper()
	req := newRequest(t, "POST", url, "")
	req.Body, req.GetBody, req.ContentLength = io.NopCloser(body), nil, -1
	return req
}

// slowReader gives its text in pieces, each after a pause, and its end after another.
type slowReader struct {
	text  string
	piece int
	every time.Duration
}

func (s *slowReader) Read(b []byte) (int, error) {
	time.Sleep(s.every)
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), s.piece)], s.text)
	s.text = s.text[n:]
	return n, nil
}

// reply is an answer that came whole.
type reply struct {
	status int
	header http.Header
	body   string
	took   time.Duration
}

// exchange sends a request and reads the whole answer.
func exchange(t *testing.T, c *http.Client, req *http.Request) reply {
	t.Helper()
	r, err := try(c, req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is exchange for a goroutine of a test's, and for a request that may fail.
func try(c *http.Client, req *http.Request) (reply, error) {
	start := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(body), time.Since(start)}, err
}

// raw is a client that writes what it likes.
type raw struct {
	net.Conn
	*bufio.Reader
}

// dial sends the head of a request, whose lines end in \n here.
func (r *rig) dial(t *testing.T, head string) raw {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(r.front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, strings.ReplaceAll(head, "\n", "\r\n"))
	return raw{c, bufio.NewReader(c)}
}

// answer reads the head of an answer.
func (c raw) answer(t *testing.T) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// status is the first line of an answer, of which it reads the head.
func (c raw) status(t *testing.T) string {
	t.Helper()
	resp := c.answer(t)
	return resp.Proto + " " + resp.Status
}
