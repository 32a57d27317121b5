package extproc

import "sync"

// body is a request body in FULL_DUPLEX_STREAMED. Its pieces are kept as they came, to be echoed; small ones are
// joined, as each costs more than its bytes.
type body struct {
	pieces [][]byte
	size   int
}

// joined is how large joined pieces grow: below it a client that sends byte by byte would have weir keep some forty
// bytes for each, and what Envoy sends of a large body, 16 KiB and more at once, is not copied.
const joined = 16 << 10

func (b *body) add(piece []byte) {
	if len(piece) == 0 {
		return
	}
	b.size += len(piece)
	if last := len(b.pieces) - 1; last >= 0 && len(b.pieces[last])+len(piece) <= joined {
		b.pieces[last] = append(b.pieces[last], piece...)
		return
	}
	b.pieces = append(b.pieces, piece)
}

// flatten returns the body in one piece: the only one as it is, several in buf.
func (b *body) flatten(buf *[]byte) []byte {
	switch len(b.pieces) {
	case 0:
		return nil
	case 1:
		return b.pieces[0]
	}
	if *buf = (*buf)[:0]; cap(*buf) < b.size {
		*buf = make([]byte, 0, b.size)
	}
	for _, piece := range b.pieces {
		*buf = append(*buf, piece...)
	}
	return *buf
}

// buffers are what bodies of several pieces are parsed in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// largest is the largest buffer that is kept for the next body: it holds a prompt of a million tokens, and a rare
// larger body leaves no memory behind.
const largest = 4 << 20

// routePieces routes the request with the body that was kept in pieces, which is in one for as long as it is parsed;
// false: there is no memory for that.
func (st *stream) routePieces() bool {
	st.req.Kept = st.body.size
	if len(st.body.pieces) < 2 {
		st.route(st.body.flatten(nil))
		return true
	}
	size := int64(st.body.size)
	if !st.take(size) {
		return false
	}
	buf := buffers.Get().(*[]byte)
	st.route(st.body.flatten(buf))
	if cap(*buf) <= largest {
		buffers.Put(buf)
	}
	st.give(size)
	return true
}

// echo sends the body back as it came, and gives back its memory piece by piece. last says that no trailers follow.
func (st *stream) echo(last bool) error {
	pieces := st.body.pieces
	st.body = body{}
	if last && len(pieces) == 0 {
		return st.rpc.Send(echoReply(nil, true))
	}
	for i, piece := range pieces {
		pieces[i] = nil
		for rest := piece; len(rest) > 0; {
			n := min(len(rest), echoBytes)
			end := last && i == len(pieces)-1 && n == len(rest)
			if err := st.rpc.Send(echoReply(rest[:n], end)); err != nil {
				return err
			}
			rest = rest[n:]
		}
		st.give(int64(len(piece)))
	}
	return nil
}

// echoBytes is the size of an echoed chunk: what Envoy itself handles best is under 64 KiB.
const echoBytes = 62 << 10
