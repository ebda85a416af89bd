package opaque_test

import (
	"crypto/aes"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/opaque"
)

// standard is FF1 of NIST SP 800-38G, section 5.1, algorithm 7, word for word, for any radix
// and tweak. TestStandard holds it to the samples of NIST, and TestFF1 holds the product to it.
func standard(t rapid.TB, key, tweak []byte, radix int, x []int) []int {
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	n, r := len(x), big.NewInt(int64(radix))
	u := n / 2
	v := n - u
	a, b := x[:u], x[u:]
	bytesOfHalf := (new(big.Int).Sub(new(big.Int).Exp(r, big.NewInt(int64(v)), nil), big.NewInt(1)).BitLen() + 7) / 8
	d := 4*((bytesOfHalf+3)/4) + 4
	p := []byte{1, 2, 1, 0, byte(radix >> 8), byte(radix), 10, byte(u)}
	p = binary.BigEndian.AppendUint32(p, uint32(n))
	p = binary.BigEndian.AppendUint32(p, uint32(len(tweak)))
	number := func(digits []int) *big.Int {
		sum := new(big.Int)
		for _, digit := range digits {
			sum.Mul(sum, r).Add(sum, big.NewInt(int64(digit)))
		}
		return sum
	}
	for i := range 10 {
		q := append([]byte{}, tweak...)
		for (len(q)+1+bytesOfHalf)%16 != 0 {
			q = append(q, 0)
		}
		q = append(append(q, byte(i)), number(b).FillBytes(make([]byte, bytesOfHalf))...)
		mac := make([]byte, 16)
		for all := append(append([]byte{}, p...), q...); len(all) > 0; all = all[16:] {
			for k := range mac {
				mac[k] ^= all[k]
			}
			block.Encrypt(mac, mac)
		}
		s := append([]byte{}, mac...)
		for j := 1; len(s) < d; j++ {
			next := append([]byte{}, mac...)
			next[15] ^= byte(j)
			block.Encrypt(next, next)
			s = append(s, next...)
		}
		m := u
		if i%2 == 1 {
			m = v
		}
		sum := new(big.Int).Add(number(a), new(big.Int).SetBytes(s[:d]))
		c := make([]int, m)
		for k := range c {
			digit := new(big.Int)
			sum.DivMod(sum, r, digit)
			c[m-1-k] = int(digit.Int64())
		}
		a, b = b, c
	}
	return append(append([]int{}, a...), b...)
}

const digits36 = "0123456789abcdefghijklmnopqrstuvwxyz"

// TestStandard: the samples 1 to 3 and 7 to 9 that NIST publishes with SP 800-38G.
func TestStandard(t *testing.T) {
	aes128 := "2b7e151628aed2a6abf7158809cf4f3c"
	aes256 := aes128 + "ef4359d8d580aa4f7f036d6f04fc6a94"
	for _, tc := range []struct {
		key, tweak string
		radix      int
		in, out    string
	}{
		{aes128, "", 10, "0123456789", "2433477484"},
		{aes128, "39383736353433323130", 10, "0123456789", "6124200773"},
		{aes128, "3737373770717273373737", 36, "0123456789abcdefghi", "a9tv40mll9kdu509eum"},
		{aes256, "", 10, "0123456789", "6657667009"},
		{aes256, "39383736353433323130", 10, "0123456789", "1001623463"},
		{aes256, "3737373770717273373737", 36, "0123456789abcdefghi", "xs8a0azh2avyalyzuwd"},
	} {
		key, err := hex.DecodeString(tc.key)
		if err != nil {
			t.Fatal(err)
		}
		tweak, err := hex.DecodeString(tc.tweak)
		if err != nil {
			t.Fatal(err)
		}
		in := make([]int, len(tc.in))
		for i := range in {
			in[i] = strings.IndexByte(digits36, tc.in[i])
		}
		var out strings.Builder
		for _, digit := range standard(t, key, tweak, tc.radix, in) {
			out.WriteByte(digits36[digit])
		}
		if out.String() != tc.out {
			t.Errorf("%s with tweak %q is %s, want %s", tc.in, tc.tweak, out.String(), tc.out)
		}
	}
}

// TestFF1: the product's form of FF1 is the standard's, for each number of bits that it takes.
func TestFF1(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "key")
		n := rapid.UintRange(20, 64).Draw(t, "bits")
		x := rapid.Uint64().Draw(t, "x") >> (64 - n)
		encrypt, decrypt, err := opaque.FF1(key, n)
		if err != nil {
			t.Fatal(err)
		}
		in := make([]int, n)
		for i := range in {
			in[i] = int(x >> (int(n) - 1 - i) & 1)
		}
		var want uint64
		for _, bit := range standard(t, key, nil, 2, in) {
			want = want<<1 | uint64(bit)
		}
		got := encrypt(x)
		if got != want {
			t.Fatalf("%d bits: %x is %x, want %x", n, x, got, want)
		}
		if back := decrypt(got); back != x {
			t.Fatalf("%d bits: %x comes back as %x", n, x, back)
		}
	})
}

// TestFF1OfAnother: a value of the Rust crate fpe (docs.rs/fpe), whose strings begin with the lowest bit.
func TestFF1OfAnother(t *testing.T) {
	encrypt, _, err := opaque.FF1(make([]byte, 32), 24)
	if err != nil {
		t.Fatal(err)
	}
	turned := func(b [3]byte) uint64 {
		return uint64(bits.Reverse8(b[0]))<<16 | uint64(bits.Reverse8(b[1]))<<8 | uint64(bits.Reverse8(b[2]))
	}
	if got, want := encrypt(turned([3]byte{0xab, 0xcd, 0xef})), turned([3]byte{0x75, 0xfb, 0x62}); got != want {
		t.Errorf("got %06x, want %06x", got, want)
	}
}

// TestFF1IsAPermutation: 2^16 strings become 2^16 strings.
func TestFF1IsAPermutation(t *testing.T) {
	encrypt, _, err := opaque.FF1(make([]byte, 32), 16)
	if err != nil {
		t.Fatal(err)
	}
	seen := make([]bool, 1<<16)
	for x := range uint64(1 << 16) {
		y := encrypt(x)
		if seen[y] {
			t.Fatalf("%x is reached twice", y)
		}
		seen[y] = true
	}
}
