// Package sim runs a workload through routers to replicas, in virtual time.
//
//	arrival         a router, one of several at random, sends, holds or refuses the request
//	replica         a step ends: answers begin and end, and routers are told
//	scrape          each second, each replica at its own phase; routers see it Stale later
//	timer           a router's own: a hold ends by time alone
//
// Events happen in the order of their time, and those of one instant in this order: replicas, scrapes that reach the
// routers, scrapes, timers, arrivals. So one seed gives the same bytes every time. There is no clock and no goroutine.
//
// Every request ends as answered, late or refused, and what came in went out: Run checks it (conserve).
package sim
