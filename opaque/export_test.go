package opaque

// FF1 is the bare algorithm on strings of n bits.
func FF1(key []byte, n uint) (encrypt, decrypt func(uint64) uint64, err error) {
	f, err := newFF1(key, n)
	if err != nil {
		return nil, nil, err
	}
	return f.encrypt, f.decrypt, nil
}
