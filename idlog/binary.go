package idlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// The binary format is a header of 8 bytes, magic and version, and blocks:
//
//	uint32  length of the payload in bytes, little endian, 1 to maxPayload
//	uint32  CRC-32C of these four bytes and the payload
//	payload records
//
// A block can be read without the ones before it. Its records are
//
//	uvarint  2 * number of the key within the block, from 1; + 1 if it is a range
//	         number 0: a new key follows, uvarint length and bytes, and gets the next number
//	varint   Lo minus the Hi before it of the same key in the block, or minus 0; modulo 2^64
//	uvarint  Hi - Lo, at least 1, if it is a range
//
// A writer writes whole blocks, each in one call. What a killed process or a crashed
// machine leaves of the last one is a torn tail: a block that goes past the end of the
// file, whose checksum is wrong and after which nothing follows, or zeros. Blocks are
// small, so that damage elsewhere is not taken for a tail.
const (
	magic       = "\x89idlog\n"
	version     = 1
	headerSize  = len(magic) + 1
	blockHeader = 8
	maxPayload  = 64 << 10
	blockTarget = 32 << 10 // a writer ends a block beyond this; one record has at most 1 KiB + 40
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:4], castagnoli), castagnoli, payload)
}

// blockEncoder collects the records of one block.
type blockEncoder struct {
	buf  []byte // with room for the block header in front, if not empty
	keys map[string]int
	prev []int64 // Hi of the last record, by key
	last string  // key of the last record
	no   int     // its number, 0 if the block has no record
}

func (e *blockEncoder) add(r Record) {
	if len(e.buf) == 0 {
		e.buf = append(e.buf, make([]byte, blockHeader)...)
		if e.keys == nil {
			e.keys = map[string]int{}
		}
		clear(e.keys)
		e.prev, e.no = e.prev[:0], 0
	}
	var isRange uint64
	if r.Hi != r.Lo {
		isRange = 1
	}
	if e.no == 0 || r.Key != e.last {
		e.last, e.no = r.Key, e.keys[r.Key]
	}
	e.buf = binary.AppendUvarint(e.buf, uint64(e.no)<<1|isRange)
	if e.no == 0 {
		e.prev = append(e.prev, 0)
		e.no = len(e.prev)
		e.keys[r.Key] = e.no
		e.buf = binary.AppendUvarint(e.buf, uint64(len(r.Key)))
		e.buf = append(e.buf, r.Key...)
	}
	prev := &e.prev[e.no-1]
	e.buf = binary.AppendVarint(e.buf, int64(uint64(r.Lo)-uint64(*prev)))
	if isRange == 1 {
		e.buf = binary.AppendUvarint(e.buf, uint64(r.Hi)-uint64(r.Lo))
	}
	*prev = r.Hi
}

// take returns the finished block and starts another one in next.
func (e *blockEncoder) take(next []byte) []byte {
	block := e.buf
	payload := block[blockHeader:]
	binary.LittleEndian.PutUint32(block, uint32(len(payload)))
	binary.LittleEndian.PutUint32(block[4:], checksum(block, payload))
	e.buf = next[:0]
	return block
}

// blockReader reads the binary format after its header.
type blockReader struct {
	in    *bufio.Reader
	names interner
	at    Place // of the record that was read last
	next  int64 // offset of what comes after the block
	block []byte
	rest  []byte // of block, not yet decoded
	keys  []string
	prev  []int64
	torn  *Torn
}

func (r *blockReader) read() (Record, error) {
	for len(r.rest) == 0 {
		if err := r.fill(); err != nil {
			return Record{}, err
		}
	}
	r.at.Offset = r.next - int64(len(r.rest))
	rec, err := r.decode()
	if err != nil {
		// The checksum was right: a faulty writer, not a damaged file.
		return Record{}, err
	}
	return rec, nil
}

// fill reads the next block.
func (r *blockReader) fill() error {
	r.at.Offset = r.next
	var head [blockHeader]byte
	n, err := io.ReadFull(r.in, head[:])
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return r.tear(int64(n), "the last block is incomplete")
	case err != nil:
		return fmt.Errorf("read %v: %w", r.at, err)
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size == 0 || size > maxPayload {
		return r.zeros(head[:], size)
	}
	r.block = append(r.block[:0], make([]byte, size)...)
	m, err := io.ReadFull(r.in, r.block)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.tear(int64(n+m), "the last block is incomplete")
	case err != nil:
		return fmt.Errorf("read %v: %w", r.at, err)
	}
	if got, want := checksum(head[:], r.block), binary.LittleEndian.Uint32(head[4:]); got != want {
		if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
			return r.tear(int64(n+m), "the checksum of the last block is wrong")
		}
		return r.broken("block checksum", fmt.Sprintf("%08x", want), fmt.Sprintf("the block has %08x, and more blocks follow it", got))
	}
	r.next += int64(n + m)
	r.rest, r.keys, r.prev = r.block, r.keys[:0], r.prev[:0]
	return nil
}

// zeros accepts a tail of nothing but zeros, which a crashed machine leaves when the
// file was made longer before its data was written.
func (r *blockReader) zeros(head []byte, size uint32) error {
	tail := int64(len(head))
	zero := allZero(head)
	for buf := make([]byte, 4<<10); zero; {
		n, err := r.in.Read(buf)
		tail += int64(n)
		zero = allZero(buf[:n])
		if zero && errors.Is(err, io.EOF) {
			return r.tear(tail, "nothing but zeros")
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %v: %w", r.at, err)
		}
	}
	return r.broken("block length", fmt.Sprint(size), fmt.Sprintf("must be 1 to %d", maxPayload))
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func (r *blockReader) tear(size int64, reason string) error {
	r.torn = &Torn{r.at, size, reason}
	return io.EOF
}

func (r *blockReader) broken(field, value, limit string) error {
	return &SyntaxError{r.at, field, value, limit}
}

// decode takes the next record off rest.
func (r *blockReader) decode() (Record, error) {
	head, err := r.uvarint("key number")
	if err != nil {
		return Record{}, err
	}
	no, isRange := head>>1, head&1 == 1
	if no == 0 {
		size, err := r.uvarint("key length")
		if err != nil {
			return Record{}, err
		}
		if size > MaxKey || size > uint64(len(r.rest)) {
			return Record{}, r.broken("key length", fmt.Sprint(size), fmt.Sprintf("limit %d, and %d bytes are left in the block", MaxKey, len(r.rest)))
		}
		r.keys = append(r.keys, r.names.of(r.rest[:size]))
		r.prev = append(r.prev, 0)
		r.rest = r.rest[size:]
		no = uint64(len(r.keys))
	}
	if no > uint64(len(r.keys)) {
		return Record{}, r.broken("key number", fmt.Sprint(no), fmt.Sprintf("the block has %d keys so far", len(r.keys)))
	}
	delta, n := binary.Varint(r.rest)
	if n <= 0 {
		return Record{}, r.broken("ID", shorten(r.rest), "is no number, or goes past the end of the block")
	}
	r.rest = r.rest[n:]
	rec := Record{Key: r.keys[no-1], Lo: int64(uint64(r.prev[no-1]) + uint64(delta))}
	rec.Hi = rec.Lo
	if isRange {
		size, err := r.uvarint("range length")
		if err != nil {
			return Record{}, err
		}
		if left := uint64(math.MaxInt64) - uint64(rec.Lo); size == 0 || size > left {
			return Record{}, r.broken("range length", fmt.Sprint(size), fmt.Sprintf("must be 1 to %d after %d", left, rec.Lo))
		}
		rec.Hi = int64(uint64(rec.Lo) + size)
	}
	r.prev[no-1] = rec.Hi
	return rec, nil
}

func (r *blockReader) uvarint(field string) (uint64, error) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, r.broken(field, shorten(r.rest), "is no number, or goes past the end of the block")
	}
	r.rest = r.rest[n:]
	return v, nil
}
