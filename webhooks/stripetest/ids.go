package stripetest

import (
	"crypto/sha256"
	"fmt"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// ids makes ids that look like Stripe's and follow from the seed.
type ids struct {
	seed uint64
	next map[string]int
}

func (i *ids) make(kind string) string {
	i.next[kind]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d/%s/%d", i.seed, kind, i.next[kind]))
	text := make([]byte, 22)
	for at := range text {
		text[at] = base62[int(sum[at])%len(base62)]
	}
	return kind + "_1" + string(text)
}
