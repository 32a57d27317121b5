package replica

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"

	"github.com/cespare/xxhash/v2"
)

// embeddingSize is the numbers of an embedding: few, as nobody looks for meaning in them.
const embeddingSize = 8

// embedded writes a job's prompts as embeddings, in JSON's numbers or, as the openai package asks, in base64.
type embedded struct{ *job }

// vector is the embedding of a text: equal for equal texts, and of length 1.
func vector(text []byte) []float32 {
	v := make([]float32, embeddingSize)
	sum := 0.0
	for i := range v {
		var d xxhash.Digest
		d.ResetWithSeed(uint64(i))
		d.Write(text) // never fails (xxhash.Digest)
		x := float64(d.Sum64())/math.MaxUint64 - 0.5
		v[i], sum = float32(x), sum+x*x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func (e embedded) answer() any {
	var data []object
	for i, text := range e.texts {
		one := object{"index": i, "object": "embedding", "embedding": vector(text)}
		if e.base64 {
			raw, _ := binary.Append(nil, binary.LittleEndian, vector(text)) // floats have a fixed size
			one["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, one)
	}
	return object{"id": "embd-" + e.id, "object": "list", "created": e.created, "model": json.RawMessage(e.model), "data": data,
		"usage": object{"prompt_tokens": e.prompts, "total_tokens": e.prompts, "completion_tokens": 0, "prompt_tokens_details": nil}}
}
