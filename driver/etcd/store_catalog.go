package etcd

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Create implements segment.Catalog.
func (s *Store) Create(ctx context.Context, row segment.NewRow) (err error) {
	if err := row.Validate(); err != nil {
		return err
	}
	row.Options = row.Stored()
	defer s.done(&err, "create tag %q", row.Tag)
	key, notice, answers := s.rowKey(row.Tag), s.noticeKey(row.Tag), s.answersOf(row.Tag)
	text := rowText("", segment.Row{MaxID: row.Start, Step: row.Step, Description: row.Description, UpdateTime: time.Now().UTC(), Options: row.Options})
	for {
		read, revision, err := s.look(ctx, get(key), get(notice), getAll(answers))
		if err != nil {
			return err
		}
		if textOf(read[0]) != "" {
			return fmt.Errorf("%w: the tag exists", leaf.ErrConflict)
		}
		n, err := parseNotices(read[1])
		if err != nil {
			return err
		}
		told, err := parseAnswers(read[2])
		if err != nil {
			return err
		}
		if err := row.CheckStart(segment.NoticeOf(row.Tag, n), told); err != nil {
			return err
		}
		// What the board knows must still be all when the row is there: a Delete of a row that was
		// created meanwhile leaves its end there.
		done, _, err := s.write(ctx,
			[]clientCmp{isAbsent(key), hasNothingSince(revision, notice), hasNothingSince(revision, answers)},
			[]clientOp{put(key, text)}, nil)
		if done || err != nil {
			return err
		}
	}
}

// Update implements segment.Catalog.
func (s *Store) Update(ctx context.Context, tag string, c segment.Change) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	defer s.done(&err, "update tag %q", tag)
	return s.change(ctx, tag, func(r *segment.Row) error {
		if err := c.CheckMaxID(r.MaxID); err != nil {
			return err
		}
		if c.MaxID != nil {
			r.MaxID = *c.MaxID
		}
		if c.Step != nil {
			r.Step = *c.Step
		}
		if c.Description != nil {
			r.Description = *c.Description
		}
		if err := c.CheckPeriod(r.Options, r.MaxID); err != nil || !c.TouchesOptions() {
			return err
		}
		if err := c.CheckFormat(r.Options); err != nil {
			return err
		}
		r.Options = c.ApplyTo(r.Options)
		return r.Options.Validate()
	})
}

// Delete implements segment.Catalog.
func (s *Store) Delete(ctx context.Context, tag string) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	defer s.done(&err, "delete tag %q", tag)
	key, end := s.rowKey(tag), s.answerKey(tag, segment.DeletedRow)
	for {
		read, _, err := s.look(ctx, get(key), get(end))
		if err != nil {
			return err
		}
		text, kept := textOf(read[0]), textOf(read[1])
		if text == "" {
			return leaf.ErrUnknownTag
		}
		r, err := parseRow(tag, key, []byte(text))
		if err != nil {
			return err
		}
		if err := segment.CheckDelete(r.MaxID); err != nil {
			return err
		}
		before, err := parseAnswers(read[1])
		if err != nil {
			return err
		}
		deleted := segment.Answer{Tag: tag, Node: segment.DeletedRow, High: segment.DeletedEnd(r.MaxID)}
		for _, a := range before {
			deleted.High = max(deleted.High, a.High)
		}
		done, _, err := s.write(ctx, []clientCmp{is(key, text), is(end, kept)},
			[]clientOp{remove(key), remove(s.tagLimitKey(tag)), put(end, encode(answerOf(deleted)))}, nil)
		if done || err != nil {
			return err
		}
	}
}
