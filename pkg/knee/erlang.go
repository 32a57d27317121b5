package knee

import "math"

// ErlangC is the probability that a request has to wait in M/M/c: Poisson arrivals, exponential service, c servers and one
// queue. load is the work that arrives, in servers: the rate of arrival times the mean service time. It is 1 at a load of
// c and above, where the queue has no end, and 0 without load. From Erlang's loss formula B by its recursion (1917), whose
// every step is a sum and a quotient of positive numbers, so that neither a large c nor a large load overflows:
//
//	B_0 = 1,  B_k = load*B_(k-1) / (k + load*B_(k-1)),  C = B_c / (1 - load/c*(1 - B_c))
func ErlangC(c int, load float64) float64 {
	switch {
	case !(load < float64(c)):
		return 1
	case load <= 0:
		return 0
	}
	b := 1.0
	for k := range c {
		b *= load
		b /= float64(k+1) + b
	}
	return b / (1 - load/float64(c)*(1-b))
}

// QueueWait is the mean wait in M/M/c before service begins, in the unit of service, the mean time that a server needs for
// a request. It has no end at a load of c and above.
func QueueWait(c int, load, service float64) float64 {
	if !(load < float64(c)) {
		return math.Inf(1)
	}
	return ErlangC(c, load) * service / (float64(c) - load)
}

// AllenCunneen is the mean wait in G/G/c before service begins, in the unit of service, where the gaps between arrivals have
// the squared coefficient of variation arrivals and the service times that of services: the wait of M/M/c times the mean of
// the two (Allen, Probability, Statistics, and Queueing Theory, 2nd edition, 1990, the approximation of Allen and Cunneen).
// It is exact for M/M/c and M/G/1.
func AllenCunneen(c int, load, service, arrivals, services float64) float64 {
	return QueueWait(c, load, service) * (arrivals + services) / 2
}

// WaitsLonger is the share of requests that wait for longer than t in G/G/c: the share that waits at all and an exponential
// whose mean is Allen and Cunneen's, as in M/M/c, where it is exact. t is in the unit of service.
func WaitsLonger(c int, load, service, arrivals, services, t float64) float64 {
	waits := ErlangC(c, load)
	if waits == 0 || !(load < float64(c)) {
		return waits
	}
	return waits * math.Exp(-t*waits/AllenCunneen(c, load, service, arrivals, services))
}

// MaxLoad is the most load, in servers, that c of them take in M/M/c with at most that share of requests, below 1, waiting
// for longer than a server needs for one on average:
//
//	ErlangC(c, load) * exp(-(c - load)) <= share
//
// It grows with c. 0 servers take none. The result is within 1e-9; the work grows with c, 0.5 us for 1 and 140 us for 512.
func MaxLoad(c int, share float64) float64 {
	low, high := 0.0, float64(c)
	for high-low > 1e-9 {
		mid := (low + high) / 2
		if ErlangC(c, mid)*math.Exp(mid-float64(c)) <= share {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}
