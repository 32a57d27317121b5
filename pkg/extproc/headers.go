package extproc

import (
	"strconv"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/metadata"
)

const (
	// destination is the header, and the key in the metadata namespace envoy.lb, that override_host reads.
	destination = "x-gateway-destination-endpoint"

	headerClass    = "x-weir-class"
	headerDeadline = "x-weir-deadline"
	// headerAnthropic names the version of Anthropic's API that the client speaks.
	headerAnthropic = "anthropic-version"

	metaClass    = "weir-class"
	metaDeadline = "weir-deadline"
	metaPool     = "weir-pool"
)

// readHeaders fills the request from its headers, its route's gRPC metadata and Envoy's attributes.
func (st *stream) readHeaders(m *extprocv3.ProcessingRequest, h *extprocv3.HttpHeaders) {
	from := st.srv.sources.Load()
	var length, connection string
	var upgrade bool
	for _, v := range h.GetHeaders().GetHeaders() {
		value := v.GetValue()
		if raw := v.GetRawValue(); len(raw) > 0 { // Envoy fills one of the two: raw_value, as a rule
			value = string(raw)
		}
		switch key := v.GetKey(); key {
		case ":path":
			st.req.Path = value
		case ":method":
			st.tunnel = value == "CONNECT"
		case "upgrade": // Envoy takes it away unless upgrade_configs allow it
			upgrade = true
		case "connection":
			connection = join(connection, value)
		case "content-length":
			length = join(length, value)
		case "content-encoding":
			st.encoding = join(st.encoding, value)
		case headerClass:
			st.req.Class.HeaderClass = join(st.req.Class.HeaderClass, value)
		case headerDeadline:
			st.req.Class.HeaderDeadline = join(st.req.Class.HeaderDeadline, value)
		case destination:
			st.client = true
		case headerAnthropic:
			st.anthropic = true
		}
		if from.flow.header != "" && v.GetKey() == from.flow.header {
			st.req.Flow = cut(join(st.req.Flow, value))
		}
	}
	st.length = lengthOf(length)
	st.tunnel = st.tunnel || upgrade && listed(connection, "upgrade") // without the other each is void
	if from.flow.namespace != "" {
		st.req.Flow = from.flow.metadata(m)
	}
	st.req.Class.TrustedClass = from.classFrom.metadata(m)
	md, _ := metadata.FromIncomingContext(st.rpc.Context())
	st.req.Class.RouteClass = last(md[metaClass])
	st.req.Class.RouteDeadline = last(md[metaDeadline])
	if st.poolName = last(md[metaPool]); st.poolName == "" {
		st.poolName = attribute(m, "xds.cluster_name")
	}
	if st.pool = st.srv.pools[st.poolName]; st.pool == nil {
		st.poolName = "" // a name that no configuration knows is nobody's label
		return
	}
	if name := st.pool.AffinityHeader(); name != "" {
		st.req.Session = header(h, name)
	}
}

// join puts the values of a repeated header together as HTTP does.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "," + b
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// attribute returns an attribute that the filter's request_attributes or response_attributes ask for; empty if
// Envoy did not send it. Envoy puts them under the filter's name.
func attribute(m *extprocv3.ProcessingRequest, name string) string {
	for _, filter := range m.GetAttributes() {
		if v, ok := filter.GetFields()[name]; ok {
			return v.GetStringValue()
		}
	}
	return ""
}

// header returns a header's first value.
func header(h *extprocv3.HttpHeaders, key string) string {
	for _, v := range h.GetHeaders().GetHeaders() {
		if v.GetKey() == key {
			if raw := v.GetRawValue(); len(raw) > 0 {
				return string(raw)
			}
			return v.GetValue()
		}
	}
	return ""
}

// statusOf returns the response's HTTP status; 0 if it has none.
func statusOf(h *extprocv3.HttpHeaders) int {
	n, err := strconv.Atoi(header(h, ":status"))
	if err != nil || n < 100 || n > 599 {
		return 0
	}
	return n
}

// lengthOf reads a Content-Length; -1 for none, for anything but a number, and for a petabyte, which nobody sends.
func lengthOf(text string) int64 {
	n, err := strconv.ParseUint(text, 10, 50)
	if err != nil {
		return -1
	}
	return int64(n)
}

// listed reports whether a header that is a list has a token, in any case.
func listed(list, token string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(one), token) {
			return true
		}
	}
	return false
}
