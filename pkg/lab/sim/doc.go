// Package sim runs a workload through routers to replicas, in virtual time.
//
//	arrival         a router, one of several at random, sends, holds or refuses the request
//	replica         a step ends: answers begin and end, and routers are told
//	scrape          each second, each replica at its own phase; routers see it Stale later
//	timer           a router's own: a hold ends by time alone
//	event           a replica dies, joins or slows down, its metrics fail, a router starts anew
//
// Events happen in the order of their time, and those of one instant in this order: replicas, scrapes that reach the
// routers, scrapes, timers, events, arrivals. So one seed gives the same bytes every time. There is no clock and no goroutine.
//
// A dead replica refuses connections: Envoy tries a request's second choice, and the router learns of it when that answers.
// Every request ends as answered, late, refused or lost with its replica, and what came in went out: Run checks it (conserve).
//
// Replicas may differ (Config.Each). Routers are told one profile for all, as an operator's policy has one; a replica's own
// metrics tell them the size of its KV and nothing of its speed. The oracle knows both.
//
// Speed, in requests per second of one core's time, under weir at the busiest load of a workload (go test -bench Sim -cpu 1):
//
//	W3 22,000   W3-fresh 17,000   W6 25,000   W10 42,000   W7 16,000   W7-1 20,000   W8 10,000
//	W5-19 48,000   W5-35 26,000   W5-47 22,000   W5-73 14,000
//
// and of W5-35 (go test -bench Wide -cpu 1), at 4 requests/s for each replica:
//
//	4 replicas, 4 routers 19,000   512 replicas 3,600   512 replicas, 4 routers 3,300
//
// Long prompts cost most: each of their blocks is looked up, entered and evicted in a replica and in weir's index. In a wide
// pool it is the lookup in each replica's index, and there the misses of the CPU's cache.
package sim
