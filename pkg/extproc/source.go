package extproc

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"golang.org/x/net/http/httpguts"
)

// source is where in a request a value stands that the operator trusts. The zero value is nowhere.
type source struct {
	header    string   // in lower case, as Envoy sends it
	namespace string   // of dynamic metadata, which the filter's forwarding_namespaces must list
	path      []string // inside it
}

// sources are those of a policy. A stream takes them once, so that a reload does not split it.
type sources struct {
	flow, classFrom source
}

// maxValue bounds a value that a source yields; what is longer is cut. No sane tenant's name is.
const maxValue = 128

const (
	headerSource   = "header:"
	metadataSource = "metadata:"
)

// parseSource reads "header:NAME" or "metadata:NAMESPACE:KEY", where dots in KEY lead into nested metadata, as a
// JWT's claims are.
func parseSource(text string) (source, error) {
	if name, ok := strings.CutPrefix(text, headerSource); ok {
		if !httpguts.ValidHeaderFieldName(name) {
			return source{}, fmt.Errorf("%q names no header", text)
		}
		return source{header: strings.ToLower(name)}, nil
	}
	if rest, ok := strings.CutPrefix(text, metadataSource); ok {
		namespace, key, _ := strings.Cut(rest, ":")
		path := strings.Split(key, ".")
		if namespace == "" || slices.Contains(path, "") {
			return source{}, fmt.Errorf("%q is not metadata:NAMESPACE:KEY", text)
		}
		return source{namespace: namespace, path: path}, nil
	}
	if text == "" {
		return source{}, nil
	}
	return source{}, fmt.Errorf("%q is not header:NAME or metadata:NAMESPACE:KEY", text)
}

// validateSources returns the faults of the sources in c.
func (c Config) validateSources() error {
	var errs []error
	if _, err := parseSource(c.Flow); err != nil {
		errs = append(errs, fmt.Errorf("flow: %w", err))
	}
	s, err := parseSource(c.ClassFrom)
	if err == nil && s.header != "" {
		err = errors.New("a header is a client's to set: it may only lower a class, and x-weir-class does")
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("class_from: %w", err))
	}
	return errors.Join(errs...)
}

// metadata returns the source's value in the message's dynamic metadata; empty if it is not there or no text.
func (s source) metadata(m *extprocv3.ProcessingRequest) string {
	if s.namespace == "" {
		return ""
	}
	at := m.GetMetadataContext().GetFilterMetadata()[s.namespace]
	for i, key := range s.path {
		v := at.GetFields()[key]
		if i == len(s.path)-1 {
			return cut(v.GetStringValue())
		}
		at = v.GetStructValue()
	}
	return ""
}

func cut(value string) string { return value[:min(len(value), maxValue)] }
