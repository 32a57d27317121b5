package extproc_test

import (
	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/protobuf/proto"
)

func clone(m *extprocv3.ProcessingRequest) *extprocv3.ProcessingRequest { return proto.CloneOf(m) }

// What the messages of FuzzStream are made of.
const (
	fzHeaders       = 0x00
	fzBody          = 0x32 // the whole chat body
	fzEmpty         = 0x02
	fzByte          = 0x12
	fzLarge         = 0x52 // a byte below the limit
	fzTrailers      = 0x04
	fzAnswer        = 0x05
	fzAnswerBody    = 0x06
	fzAnswerTrailer = 0x07
	fzEnd           = 0x08 // of the stream, on top of the others
)

// fuzzSeeds are the orders that Envoy sends, in every mode, and faults in them.
func fuzzSeeds() (all [][]byte) {
	orders := [][]byte{
		{fzHeaders | fzEnd, fzAnswer, fzAnswerBody | fzEnd},
		{fzHeaders, fzBody | fzEnd, fzAnswer, fzAnswerTrailer},
		{fzHeaders, fzBody, fzTrailers, fzAnswer | fzEnd},
		{fzHeaders, fzByte, fzByte, fzEmpty, fzBody, fzEmpty | fzEnd, fzAnswer},
		{fzHeaders, fzTrailers, fzAnswer},
		{fzHeaders, fzLarge, fzByte, fzByte | fzEnd, fzAnswer},
		{fzHeaders, fzAnswer | fzEnd},
		{fzAnswer, fzAnswerBody | fzEnd},
		{fzHeaders, fzHeaders},
		{fzBody, fzHeaders},
		{fzHeaders, fzBody | fzEnd, fzBody | fzEnd, fzTrailers, fzTrailers, fzHeaders},
		{fzHeaders, fzAnswerTrailer | fzEnd},
		{},
	}
	for mode := range byte(5) {
		for _, order := range orders {
			for _, with := range [][3]byte{{}, {0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 1, 0}, {0, 6, 0}, {0xC0, 0, 0}, {0xC0, 0, 1}, {0x0C, 0, 0}, {0x38, 1, 0}} {
				all = append(all, append([]byte{mode, with[0], with[1], with[2]}, order...))
			}
		}
		all = append(all, []byte{mode | 8, 0, 0, 0, fzHeaders, fzBody | fzEnd, fzAnswer})
	}
	return all
}
