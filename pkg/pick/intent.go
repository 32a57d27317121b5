package pick

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Config is two lines of the operator's intent. Each takes one of a listed set of strings, and each can be
// switched to see what it is worth.
type Config struct {
	// BalanceOn is the load that replicas are balanced on.
	//
	//	pending_tokens   the cost of the package comment
	//	requests         each live request weighs as much as the mean request's prefill
	//	none             only the request's own prefill counts: with the knee kept, all who share a prefix wait
	//	                 for the one replica that holds it, however idle the others are
	BalanceOn string `yaml:"balance_on"`
	// Affinity is what draws a request to a replica.
	//
	//	consistent_hash(prompt_prefix)   the prefix blocks that it holds, and the prefix's home
	//	consistent_hash(header:NAME)     the home of the header's value; a request without it has none
	//	consistent_hash(prompt_cache_key)
	//	                                 likewise, of the body's prompt_cache_key, by which clients of OpenAI's API name
	//	                                 what they send again
	//	none                             nothing: all of a prompt is priced as uncached everywhere
	Affinity string `yaml:"affinity"`
}

// The values of the intent. headerOpen and headerClose stand around a header's name.
const (
	PendingTokens = "pending_tokens"
	Requests      = "requests"
	None          = "none"
	PromptPrefix  = "consistent_hash(prompt_prefix)"
	CacheKey      = "consistent_hash(prompt_cache_key)"
	headerOpen    = "consistent_hash(header:"
	headerClose   = ")"
)

// Default is what weir is for.
func Default() Config { return Config{BalanceOn: PendingTokens, Affinity: PromptPrefix} }

// Validate returns every fault of c, joined; each begins with its key and a colon.
func (c Config) Validate() error {
	var errs []error
	if c.BalanceOn != PendingTokens && c.BalanceOn != Requests && c.BalanceOn != None {
		errs = append(errs, fmt.Errorf("balance_on: %q is none of %s, %s, %s", c.BalanceOn, PendingTokens, Requests, None))
	}
	if c.Affinity != PromptPrefix && c.Affinity != CacheKey && c.Affinity != None && c.AffinityHeader() == "" {
		errs = append(errs, fmt.Errorf("affinity: %q is none of %s, %sNAME%s, %s, %s", c.Affinity, PromptPrefix, headerOpen, headerClose, CacheKey, None))
	}
	return errors.Join(errs...)
}

// AffinityHeader is the name of the header that Affinity hashes, in lower case; empty if it hashes none.
func (c Config) AffinityHeader() string {
	name, ok := strings.CutPrefix(c.Affinity, headerOpen)
	if !ok {
		return ""
	}
	if name, ok = strings.CutSuffix(name, headerClose); !ok || !httpguts.ValidHeaderFieldName(name) {
		return ""
	}
	return strings.ToLower(name)
}

// Rule is a Config as picking uses it.
type Rule struct {
	requests, alone bool // balance on requests; on nothing
	blind           bool // what replicas hold draws nobody
	sticky          bool // the home does, at all times
}

// Rule returns the rule of a valid c.
func (c Config) Rule() Rule {
	return Rule{
		requests: c.BalanceOn == Requests, alone: c.BalanceOn == None,
		blind: c.Affinity != PromptPrefix, sticky: c.AffinityHeader() != "" || c.Affinity == CacheKey,
	}
}
