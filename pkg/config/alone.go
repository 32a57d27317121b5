package config

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/weirproxy/weir/pkg/discover"
)

// Alone is a weir.yaml that no bootstrap file stands beside: the policy, and what a bootstrap would tell.
type Alone struct {
	Policy `yaml:",inline"`
	// Listen is where weir listens: unix:PATH, or ip:port. 0.0.0.0 and [::] are every address of the machine:
	// whoever reaches the port can forge streams.
	Listen string `yaml:"listen"`
	// Pools are the clusters that weir routes over, at least one.
	Pools []Pool `yaml:"pools"`
}

// Pool is an Envoy cluster by its name, as the attribute xds.cluster_name has it, and its replicas.
type Pool struct {
	Name      string   `yaml:"name"`
	Endpoints []string `yaml:"endpoints"` // ip:port, at least one, each once
}

// beside are the keys of Alone that a bootstrap file answers, and how.
var beside = [][2]string{
	{"listen", "weir listens where Envoy calls it, at the endpoint of the bootstrap file's ext_proc cluster: leave it out"},
	{"pools", "the bootstrap file's clusters with override_host are the pools: leave it out"},
}

// ReadAlone decodes a weir.yaml, n its root, that stands for a bootstrap file too. Defaults and error are those
// of Read. Endpoints come out as discover.Endpoint formats them.
func ReadAlone(n *yaml.Node, file string) (Alone, error) {
	a := Alone{Policy: Default()}
	r := newReader(file)
	r.decode(n, &a, &a.Policy)
	r.check("", a.validate())
	if line, given := r.line["ext_proc_cluster"]; given {
		r.report(line, "ext_proc_cluster", "it chooses among the clusters of a bootstrap file, and none is given")
	}
	if err := r.err(); err != nil {
		return Alone{}, err
	}
	return a, nil
}

// ReadBeside is Read of a weir.yaml, n its root, beside a bootstrap file.
func ReadBeside(n *yaml.Node, file string) (Policy, error) {
	a := Alone{Policy: Default()}
	r := newReader(file)
	r.decode(n, &a, &a.Policy)
	for _, key := range beside {
		if line, given := r.line[key[0]]; given {
			r.report(line, key[0], key[1])
		}
	}
	if err := r.err(); err != nil {
		return Policy{}, err
	}
	return a.Policy, nil
}

// validate returns the faults of listen and pools, and formats the endpoints.
func (a *Alone) validate() error {
	var errs []error
	if _, _, err := a.Address(); err != nil {
		errs = append(errs, fmt.Errorf("listen: %w", err))
	}
	if len(a.Pools) == 0 {
		errs = append(errs, errors.New("pools: at least one is needed: weir has nothing to route over"))
	}
	seen := map[string]bool{}
	for i := range a.Pools {
		p, path := &a.Pools[i], fmt.Sprintf("pools[%d]", i)
		switch {
		case p.Name == "":
			errs = append(errs, fmt.Errorf("%s.name: it is the name of the cluster in Envoy", path))
		case seen[p.Name]:
			errs = append(errs, fmt.Errorf("%s.name: %q stands twice", path, p.Name))
		}
		seen[p.Name] = true
		errs = append(errs, p.validate(path))
	}
	return errors.Join(errs...)
}

func (p *Pool) validate(path string) error {
	var errs []error
	if len(p.Endpoints) == 0 {
		errs = append(errs, fmt.Errorf("%s.endpoints: at least one is needed", path))
	}
	first := map[string]int{}
	for i, text := range p.Endpoints {
		e, err := discover.Parse(text)
		was, twice := first[e]
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s.endpoints[%d]: %w", path, i, err))
		case twice:
			errs = append(errs, fmt.Errorf("%s.endpoints[%d]: %s stands twice, first as endpoints[%d]", path, i, e, was))
		default:
			first[e], p.Endpoints[i] = i, e
		}
	}
	return errors.Join(errs...)
}

// Address returns Listen as net.Listen takes it. A relative path starts in weir's working directory.
func (a *Alone) Address() (network, address string, err error) {
	if path, ok := strings.CutPrefix(a.Listen, "unix:"); ok {
		return "unix", path, Socket(path)
	}
	at, err := discover.AddrPort(a.Listen)
	if err != nil {
		return "", "", fmt.Errorf("%q is not unix:PATH or ip:port", a.Listen)
	}
	return "tcp", at.String(), nil
}

// maxSocketPath is what Linux takes: sun_path is 108 bytes with a zero at its end.
const maxSocketPath = 107

// Socket returns what is wrong with the path of a unix socket.
func Socket(path string) error {
	if path == "" || len(path) > maxSocketPath || strings.ContainsRune(path, 0) {
		return fmt.Errorf("the socket %q: a path is 1 to %d bytes", path, maxSocketPath)
	}
	return nil
}
