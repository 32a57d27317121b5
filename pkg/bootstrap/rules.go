package bootstrap

import "go.yaml.in/yaml/v4"

// Rule is one thing that Check judges.
type Rule struct {
	Name     string
	Severity Severity
	Why      string // one line: what comes of a file that breaks it
	find     func(m *mesh, say say)
}

// say reports what a rule finds at a node. Envoy's names stand in the text as the file may have them.
type say func(at *yaml.Node, format string, args ...any)

// The rules that are not, or not only, judged by the tree of Envoy's file.
var (
	serve    = Rule{Name: "serve", Severity: Error, Why: "weir serve refuses the file"}
	keyTwice = Rule{Name: "key-twice", Severity: Error, Why: "Envoy takes the last of two equal keys, without a word"}
	memory   = Rule{"body-memory", Warning, "in FULL_DUPLEX_STREAMED the bodies of those that are held may take all that weir keeps", bodyMemory}
)

// Rules returns every rule, in the order in which the findings of one line stand.
func Rules() []Rule {
	return append(append([]Rule{serve}, rules...), keyTwice, secret, bodyKey)
}

var rules = []Rule{
	{"unseen", Warning, "what comes over xDS, or by a header, is not checked", unseen},

	{"hold-timeout", Error, "Envoy ends a hold at message_timeout when it ignores weir's override", holdTimeout},
	{"no-message-timeout", Error, "Envoy waits for no answer: every request goes past weir, or fails", noMessageTimeout},
	{"message-timeout", Warning, "too short and large bodies miss weir, too long and a hung weir delays each request", messageTimeout},
	{"idle-timeout", Error, "Envoy answers 504 to a request that is held, or waits for its first token, for longer", idleTimeout},
	{"route-timeout", Error, "an answer that streams for longer is cut", routeTimeout},
	{"request-timeout", Warning, "a slow sender keeps its request, and the memory of its body, for ever", requestTimeout},
	{"stream-duration", Error, "max_stream_duration counts the hold too, and cuts it or the answer", streamDuration},

	{"trailer-mode", Error, "only response_trailer_mode SEND keeps weir's stream open until an answer ends", trailerMode},
	{"request-header-mode", Error, "weir needs the headers first, and refuses the stream", requestHeaderMode},
	{"response-header-mode", Warning, "weir cannot tell which replica served", responseHeaderMode},
	{"body-mode", Error, "weir picks by load alone, without the prompt", bodyMode},
	{"body-partial", Warning, "weir sees the start of a long body only", bodyPartial},
	{"upgrade", Error, "in BUFFERED an upgraded connection never gets to a replica", upgrades},
	{"proxy-continue", Error, "a client that waits for 100 Continue and its replica wait for each other", proxyContinue},
	{"request-trailer-mode", Error, "Envoy refuses FULL_DUPLEX_STREAMED without it", requestTrailerMode},
	{"response-body-mode", Warning, "each chunk of each answer passes weir, which has no use for it", responseBodyMode},
	{"ignored-replies", Error, "Envoy does not do what weir answers", ignoredReplies},
	{"forward-rules", Error, "weir does not get the headers that it reads", forwardRules},
	{"mutation-rules", Error, "Envoy drops the headers that weir sets: the pick, Retry-After", mutationRules},
	{"status-on-error", Warning, "Envoy answers 500, which no client is told to try again", statusOnError},
	{"newer-envoy", Error, "the Envoy named by -envoy refuses the file", newerEnvoy},

	memory,
	{"buffer-too-large", Error, "in BUFFERED a body in chunks over weir's body_limit is an error of gRPC, not a 413", bufferTooLarge},
	{"buffer-default", Warning, "in BUFFERED a body over 1 MiB is answered 413 long before body_limit", bufferDefault},

	{"strip-header", Error, "a client names its replica", stripHeader},
	{"pick-removed", Error, "the pick leaves with the client's header, as Envoy removes it after the filters", pickRemoved},
	{"filter-order", Warning, "a filter after weir runs when the hold is over, and may undo what weir read or picked", filterOrder},
	{"filter-off", Warning, "requests to a pool go past weir, which does not know of their work", filterOff},
	{"router", Error, "Envoy refuses anything but one router, the last of the filters", oneRouter},

	{"override-sources", Error, "nothing carries the pick to override_host", overrideSources},
	{"fallback", Error, "Envoy refuses an override_host without one; it serves while weir is gone", fallback},
	{"original-dst", Error, "whoever sets a header has Envoy dial any address", originalDst},
	{"routed-cluster", Warning, "weir reads the request and has no pool to pick from", routedCluster},
	{"host-removal", Warning, "a replica taken off the list stays pickable while its health checks pass", hostRemoval},

	{"metadata-namespace", Error, "Envoy drops the pick's metadata", metadataNamespace},
	{"log-namespace", Warning, "Envoy drops weir's decision: access log and stats have none", logNamespace},
	{"pool-attribute", Error, "weir does not learn the pool, and picks nothing", poolAttribute},
	{"served-attribute", Warning, "weir cannot tell which replica served", servedAttribute},

	{"http2", Error, "gRPC needs HTTP/2: no request reaches weir", http2},
	{"weir-health", Warning, "Envoy does not learn that weir is gone, or goes on calling it", weirHealth},
	{"keepalive", Warning, "in FULL_DUPLEX_STREAMED there is no timer: a weir that hangs holds every request", keepalive},
	{"weir-breaker", Warning, "each held request and each answer under way counts; one more goes past weir or fails", weirBreaker},
	{"replicas-breaker", Warning, "Envoy's default of 1024, or less than the replicas have seats for, turns what weir lets go into 503", replicasBreaker},
	{"no-retry", Warning, "weir's second choice is of no use: a replica's death is an error to whoever comes next", noRetry},
	{"retries", Warning, "Envoy's default of 3 at once makes errors of a replica's death", retries},

	{"metadata-command", Error, "Envoy fills it in from the request: a client names its own class", metadataCommand},
	{"metadata-value", Error, "weir reads none of it, and takes the default", metadataValue},
	{"bulk-fail-open", Warning, "weir gone, bulk goes past the gate all at once, what was held too", bulkFailOpen},
}
