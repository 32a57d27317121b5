package bootstrap

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirproxy/weir/pkg/config"
	"github.com/weirproxy/weir/pkg/pick"
)

// The rules that are judged by the policy, wherever it stands.
var (
	secret  = Rule{Name: "flow-secret", Severity: Warning, Why: "a client's secret becomes a tenant's name, which weir keeps, and of which it shows a hash"}
	bodyKey = Rule{Name: "affinity-body-key", Severity: Warning, Why: "clients send it in the body: a request without the header has no home"}
)

// judge runs the rules of the policy. unseen says that there is no filter that calls weir, so that the body mode is unknown.
func (r *reading) judge(unseen bool) (all []Finding) {
	add := func(rule Rule, at place, format string, args ...any) {
		all = append(all, Finding{at.file, at.line, rule.Severity, fmt.Sprintf(format, args...), rule.Name})
	}
	if name, ok := strings.CutPrefix(strings.ToLower(r.Policy.Edge.Flow), "header:"); ok && slices.Contains(credentials, name) {
		add(secret, r.policy.key("flow"), "flow takes the header %s for the tenant's name, and it is a secret: have a filter before weir set a name instead", name)
	}
	if r.Policy.Route.Pick.AffinityHeader() == cacheKey {
		add(bodyKey, r.policy.key("affinity"), "affinity takes a header %s, and clients have it in the body: use %s", cacheKey, pick.CacheKey)
	}
	if text := crowded(&r.Policy); unseen && text != "" {
		add(memory, r.policy.key("body_memory", "classes", "body_limit"), "%s; that is where Envoy's request_body_mode is FULL_DUPLEX_STREAMED, which is not seen here", text)
	}
	return all
}

// credentials are headers that carry a client's secret.
var credentials = []string{"authorization", "proxy-authorization", "cookie", "x-api-key"}

// cacheKey is the member of the body that clients of OpenAI's API name their prompts by.
const cacheKey = "prompt_cache_key"

// crowded says that the bodies of those that are held in FULL_DUPLEX_STREAMED may leave no memory for others; empty if they
// cannot.
func crowded(p *config.Policy) string {
	held := p.Route.HeldBytes()
	need := held + 2*p.Edge.BodyLimit
	if p.Edge.BodyMemory >= need {
		return ""
	}
	return fmt.Sprintf("weir's body_memory is %d bytes, and its classes may hold bodies of %d in each pool: those that are held can leave no memory for others, which get 503; give at least %d, or the classes a smaller max_held_bytes", p.Edge.BodyMemory, held, need)
}
