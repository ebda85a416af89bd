package main

import "sync"

// ledger knows which IDs were issued. It is safe for concurrent use.
type ledger struct {
	tags []tagLedger
}

// tagLedger has one bit per ID.
type tagLedger struct {
	mu    sync.Mutex
	pages map[int64]*[pageWords]uint64
}

const pageWords = 64 // of 64 IDs each

func newLedger(tags int) *ledger { return &ledger{tags: make([]tagLedger, tags)} }

// note reports whether the ID of a tag, by its number, is new.
func (l *ledger) note(tag int, id int64) bool {
	t := &l.tags[tag]
	word, bit := id/64, uint64(1)<<(uint64(id)%64)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pages == nil {
		t.pages = map[int64]*[pageWords]uint64{}
	}
	page := t.pages[word/pageWords]
	if page == nil {
		page = new([pageWords]uint64)
		t.pages[word/pageWords] = page
	}
	at := &page[word%pageWords]
	known := *at&bit != 0
	*at |= bit
	return !known
}
