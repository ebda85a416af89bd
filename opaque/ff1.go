package opaque

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"sync"
)

// ff1 is the algorithm FF1 of NIST SP 800-38G for strings of n bits, 16 to 64, with an empty
// tweak. A string is a number whose highest bit is the string's first.
//
// In the words of the standard: radix = 2, t = 0, u = ⌊n/2⌋, v = n-u. With v ≤ 32, b is
// ⌈v/8⌉ ≤ 4 and d is 4⌈b/4⌉+4 = 8, so one block of AES is a round: Q fits into one block,
// S is its first 8 bytes, and the block P is the same for all strings.
type ff1 struct {
	block cipher.Block
	first [aes.BlockSize]byte // the key's encryption of P
	u, v  uint                // lengths of the two halves in bits
	b     int                 // bytes of a half in Q
}

func newFF1(key []byte, n uint) (*ff1, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	f := &ff1{block: block, u: n / 2, v: n - n/2}
	f.b = int(f.v+7) / 8
	p := [aes.BlockSize]byte{0: 1, 1: 2, 2: 1, 5: 2, 6: 10, 7: byte(f.u)} // radix in [3, 6), rounds in 6
	binary.BigEndian.PutUint32(p[8:], uint32(n))
	block.Encrypt(f.first[:], p[:])
	return f, nil
}

// blocks has room for Q: what is handed to a cipher.Block would be allocated in each round.
var blocks = sync.Pool{New: func() any { return new([aes.BlockSize]byte) }}

// round returns S of round i for the half x, in the block q.
func (f *ff1) round(q *[aes.BlockSize]byte, i int, x uint64) uint64 {
	clear(q[:8]) // no tweak, padding of zeros, the round, the half
	binary.BigEndian.PutUint64(q[8:], x)
	q[aes.BlockSize-1-f.b] = byte(i)
	for k := range q {
		q[k] ^= f.first[k]
	}
	f.block.Encrypt(q[:], q[:])
	return binary.BigEndian.Uint64(q[:8])
}

func (f *ff1) encrypt(x uint64) uint64 {
	q := blocks.Get().(*[aes.BlockSize]byte)
	defer blocks.Put(q)
	a, b := x>>f.v, x&(1<<f.v-1)
	for i := range 10 {
		a, b = b, (a+f.round(q, i, b))&(1<<f.width(i)-1)
	}
	return a<<f.v | b
}

func (f *ff1) decrypt(x uint64) uint64 {
	q := blocks.Get().(*[aes.BlockSize]byte)
	defer blocks.Put(q)
	a, b := x>>f.v, x&(1<<f.v-1)
	for i := 9; i >= 0; i-- {
		a, b = (b-f.round(q, i, a))&(1<<f.width(i)-1), a
	}
	return a<<f.v | b
}

// width returns the length in bits of the half that round i makes.
func (f *ff1) width(i int) uint {
	if i%2 == 0 {
		return f.u
	}
	return f.v
}
