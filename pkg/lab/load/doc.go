// Package load drives a server of OpenAI's API with an open loop, and makes the workloads that it drives it
// with.
//
// Open loop: when each request starts is fixed beforehand and does not depend on earlier answers, as with
// many independent clients. All times count from the intended start, so a wait for a connection or for a
// late generator is part of the latency and not left out of it. How late the generator was is a result of
// its own (Result.Late): where that is not far below the times to first token, the generator was the limit.
//
// Closed loop: Loop keeps a number of requests under way beside that, as a batch job does; each starts when the one
// before it has ended.
//
// Model time: arrivals and results are in the time of the simulated replicas, which may run faster than
// the clock. A Generator of speed s sends an arrival at its time divided by s after the start, and
// multiplies what it measures by s. What Envoy and a router cost is real, so it counts s times too much.
//
// The time to first token is when the first event with text arrives; a chat's first event has only a role.
package load
