package segment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf"
)

// Limits of Masters.
const (
	MinBlock   = 1000    // so that a batch of leaf.MaxBatch IDs is at most 101 ranges
	MaxBlock   = MaxStep // IDs of a block
	MaxMasters = 16      // databases of one tag
)

// Masters are the databases in which one tag lives at once. In each of them the tag has a part: an ordinary
// row with a name of its own, which counts its own numbers. The IDs of the tag are divided into blocks of equal
// length, and the parts take turns at the blocks: number n of part i is the ID
//
//	((n/Block)*len(Stores) + i)*Block + n%Block
//
// So the parts never share an ID although the databases never talk, and within a part IDs grow with numbers.
// docs/adr/0044-masters.md has the proof.
type Masters struct {
	Block  int64 // IDs of a block, 1 to MaxBlock
	Stores []int // the databases of the parts, as places in Router.Stores
}

// Part returns the name of the row of part i of a tag, such as orders~1of2~1000. It holds all that
// the IDs of a part depend on, so that after a change of the rule no row is read in another way.
func (m *Masters) Part(tag string, i int) string {
	return fmt.Sprintf("%s~%dof%d~%d", tag, i+1, len(m.Stores), m.Block)
}

// Parts returns the names of all parts of a tag, or leaf.ErrBadRequest if the tag's name is none, or too long.
func (m *Masters) Parts(tag string) ([]string, error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return nil, err
	}
	var all []string
	for i := range m.Stores {
		all = append(all, m.Part(tag, i))
	}
	last := all[len(all)-1]
	if err := leaf.ValidateTag(last); err != nil {
		return nil, leaf.BadField("tag", tag, fmt.Sprintf("must have at most %d characters, because the tag lives in several databases and its rows there have longer names", leaf.MaxTagLen-(len(last)-len(tag))))
	}
	return all, nil
}

// ParsePart returns what the name of a part says. The Stores of m are not in it: only their
// number is right.
func ParsePart(name string) (tag string, m *Masters, i int, ok bool) {
	rest, block, ok := cutLast(name, '~')
	if !ok {
		return "", nil, 0, false
	}
	tag, place, ok := cutLast(rest, '~')
	if !ok || tag == "" {
		return "", nil, 0, false
	}
	number, of, _ := strings.Cut(place, "of")
	n, err1 := strconv.Atoi(number)
	k, err2 := strconv.Atoi(of)
	b, err3 := strconv.ParseInt(block, 10, 64)
	if err1 != nil || err2 != nil || err3 != nil || k < 2 || k > MaxMasters || n < 1 || n > k || b < 1 || b > MaxBlock {
		return "", nil, 0, false
	}
	m = &Masters{Block: b, Stores: make([]int, k)}
	return tag, m, n - 1, m.Part(tag, n-1) == name // else 01of2
}

// EndOf returns the tag that a row with this name belongs to by its name alone, and the end of the IDs of that tag if
// numbers of the row below high are in use.
func EndOf(name string, high int64) (tag string, end int64) {
	tag, m, i, ok := ParsePart(name)
	if !ok {
		return name, high
	}
	return tag, m.End(i, high)
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// blocks returns how many blocks part i has: those whose IDs all lie below MaxMaxID.
func (m *Masters) blocks(i int) int64 {
	k := int64(len(m.Stores))
	return (MaxMaxID/m.Block - int64(i) + k - 1) / k
}

// ID returns the ID that number n of part i stands for, or leaf.ErrOverflow if it has none.
func (m *Masters) ID(i int, n int64) (int64, error) {
	block := n / m.Block
	if n < 0 || block >= m.blocks(i) {
		return 0, fmt.Errorf("%w: number %d of part %d of %d has no ID below %d", leaf.ErrOverflow, n, i+1, len(m.Stores), int64(MaxMaxID))
	}
	return (block*int64(len(m.Stores))+int64(i))*m.Block + n%m.Block, nil
}

// AppendIDs appends the IDs of the numbers r of part i to dst: one range for each block. Error: that of ID; then nothing
// is appended.
func (m *Masters) AppendIDs(dst []leaf.Range, i int, r leaf.Range) ([]leaf.Range, error) {
	if r.Len() == 0 {
		return dst, nil
	}
	if _, err := m.ID(i, r.Hi-1); err != nil {
		return dst, err
	}
	for r.Len() > 0 {
		lo, err := m.ID(i, r.Lo)
		if err != nil {
			return dst, err
		}
		n := min(m.Block-r.Lo%m.Block, r.Len())
		dst = leaf.AppendRange(dst, leaf.Range{Lo: lo, Hi: lo + n})
		r.Lo += n
	}
	return dst, nil
}

// Of returns the part that an ID belongs to, and its number there. id is 0 or more.
func (m *Masters) Of(id int64) (i int, n int64) {
	block, k := id/m.Block, int64(len(m.Stores))
	return int(block % k), block/k*m.Block + id%m.Block
}

// Start returns the lowest number of part i whose ID is id or more, or leaf.ErrOverflow if there is none.
func (m *Masters) Start(i int, id int64) (int64, error) {
	k := int64(len(m.Stores))
	block := id / m.Block
	at, n := m.Of(id)
	if wait := (int64(i) - int64(at) + k) % k; wait > 0 {
		n = (block + wait) / k * m.Block
	}
	_, err := m.ID(i, n)
	return n, err
}

// End returns the end of the IDs that part i has handed out when its row has this max_id: each of
// them lies below it. A row that is outside its limits has handed out IDs up to MaxMaxID.
func (m *Masters) End(i int, maxID int64) int64 {
	if maxID <= 0 {
		return 0
	}
	id, err := m.ID(i, maxID-1)
	if err != nil {
		return MaxMaxID
	}
	return id + 1
}

// Generously says what to add to the highest ID of the tag that is found, for a start above all IDs of a row that is lost.
// What a repair adds is too little, because it adds numbers of a row: the IDs of N of them lie up to
// len(Stores)*(N+Block) apart.
func (m *Masters) Generously() string {
	return fmt.Sprintf("plus %d times the sum of one block, %d, three times "+LargestRange+", and "+OfClients+" ("+givenNumber+"; "+fmt.Sprintf(givenToRow, len(m.Stores))+"); numbers cost nothing, so add generously", len(m.Stores), m.Block)
}

// StartOfNodes is segment.StartOfNodes for a tag in several databases.
func (m *Masters) StartOfNodes() string { return startOfNodes("that number " + m.Generously()) }

// parseMasters reads NAME,NAME*BLOCK. names is nil if the text is not of this form.
func parseMasters(text string) (names []string, block int64) {
	list, after, ok := cutLast(text, '*')
	if !ok {
		return nil, 0
	}
	block, err := strconv.ParseInt(after, 10, 64)
	names = strings.Split(list, ",")
	distinct := slices.Compact(slices.Sorted(slices.Values(names)))
	if err != nil || strconv.FormatInt(block, 10) != after || block < MinBlock || block > MaxBlock ||
		len(names) < 2 || len(names) > MaxMasters || len(distinct) < len(names) || distinct[0] == "" {
		return nil, 0
	}
	return names, block
}
