package extproc

import "sync/atomic"

// memory counts the bytes of request bodies that weir keeps, over all streams: in FULL_DUPLEX_STREAMED from their
// arrival to their echo, elsewhere until they are parsed, and a copy for as long as it is parsed. A tunnel is not read
// until it is decided, while Envoy goes on sending: it counts as what gRPC keeps of it, streamWindow, which in messages of
// a byte takes twice as much memory. Any other stream is held only once its body has ended, and so is read until then.
// What gRPC has of a message that is not whole yet is not in it: that is bounded by its flow control, and in BUFFERED by
// Envoy's limits.
type memory struct {
	limit int64
	kept  atomic.Int64
}

// fits reports whether n bytes more may be kept now. It counts nothing.
func (m *memory) fits(n int64) bool { return n <= m.limit-m.kept.Load() }

// take reports whether n bytes more may be kept, and counts them if so.
func (m *memory) take(n int64) bool {
	for {
		kept := m.kept.Load()
		if n > m.limit-kept {
			return false
		}
		if m.kept.CompareAndSwap(kept, kept+n) {
			return true
		}
	}
}

// take is memory.take for what the stream then gives back, whatever its end.
func (st *stream) take(n int64) bool {
	if !st.srv.memory.take(n) {
		return false
	}
	st.kept += n
	return true
}

func (st *stream) give(n int64) {
	st.kept -= n
	st.srv.memory.kept.Add(-n)
}

// drop forgets the body and gives back all that the stream has taken.
func (st *stream) drop() {
	st.body = body{}
	st.give(st.kept)
}
