package knee

import "math"

// maxKV caps the share of KV in use where it is a load, so that the wait stays finite.
const maxKV = 0.98

// Memory is a replica's KV cache, of which a share is in use. It keeps the logarithm, as the wait of many requests is asked
// for one share.
type Memory struct{ used, log float64 }

// MemoryWith is memory with the share k in use.
func MemoryWith(k float64) Memory {
	k = min(max(k, 0), maxKV)
	return Memory{k, math.Log(k)}
}

// Need is the share of a replica's KV that a request takes.
type Need struct{ share, power float64 }

// NeedOf is a need of that share: 1 if it is more.
func NeedOf(share float64) Need {
	share = min(share, 1)
	return Need{share, math.Sqrt(2/share+2) - 1}
}

// Wait is the expected wait for memory, in seconds, of a request that takes n of it for life seconds. To such requests the
// memory is c = 1/share servers, and the wait that of M/M/c at load k, the share in use, in the approximation of
// Sakasegawa (1977):
//
//	life/c * k^(sqrt(2*(c+1))-1) / (1-k)
//
// It is nothing for small requests until little is free, and soon much for a giant. NaN stays NaN.
func (m Memory) Wait(n Need, life float64) float64 {
	if n.power*(1-m.used) > negligible {
		return 0
	}
	return life * n.share * math.Exp(n.power*m.log) / (1 - m.used)
}

// negligible is the exponent from which k^power <= exp(-power*(1-k)) is below 1e-6 and not worth an exponential.
const negligible = 14
