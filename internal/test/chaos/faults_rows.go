package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// rowFaults are what people and programs do to the rows of the tags.
func (c *cluster) rowFaults() []fault {
	table := []target{c.everyNode("table")}
	faults := []fault{
		{
			name: "step edited", about: "leaf tag set --step, in the database, every half second; the old one is set again.",
			group: ofRows, targets: table, hold: seconds(2, 5),
			begin: func(ctx context.Context, _ target, chance *rand.Rand) (func(context.Context) error, string, error) {
				ctx, cancel := context.WithCancel(ctx)
				ended := make(chan error, 1)
				go func() {
					for {
						step := []int{1, 3, 7, 13, 50, 997, 5000}[chance.IntN(7)]
						if err := c.setStep(ctx, step); err != nil && ctx.Err() == nil {
							ended <- err
							return
						}
						if pause(ctx, 500*time.Millisecond) != nil {
							ended <- nil
							return
						}
					}
				}()
				return func(ctx context.Context) error {
					cancel()
					if err := <-ended; err != nil {
						return err
					}
					return c.setStep(ctx, editedStep)
				}, "", nil
			},
		},
		{
			name: "step out of bounds", about: "a step of 0, -7 or 2147483647 by SQL; the old one is set again.",
			group: ofRows, targets: table, hold: seconds(1, 4),
			begin: func(ctx context.Context, _ target, chance *rand.Rand) (func(context.Context) error, string, error) {
				step := []int{0, -7, 1<<31 - 1}[chance.IntN(3)]
				set := func(ctx context.Context, step int) error {
					return c.sql(ctx, fmt.Sprintf("UPDATE leaf_alloc SET step = %d WHERE biz_tag = '%s'", step, edited))
				}
				return func(ctx context.Context) error { return set(ctx, editedStep) }, fmt.Sprintf("step %d", step), set(ctx, step)
			},
		},
		{
			name: "row re-created", about: "a tag's row is deleted and created again at 1; what the alarm says is typed.",
			group: ofRows, targets: table, hold: seconds(2, 5), alone: true, extra: 2 * time.Second,
			begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
				since := c.logs()
				return func(ctx context.Context) error { return c.follow(ctx, since, reborn) }, "",
					c.sql(ctx, "DELETE FROM leaf_alloc WHERE biz_tag = '"+reborn+"'",
						"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('"+reborn+"', 1, 10)")
			},
		},
	}
	if c.fenced {
		faults = append(faults, fault{
			name: "table restored", about: "all rows go back to those of the run's first second, as a restore from a dump does; every tag repaired as the alarms say.",
			group: ofRows, targets: table, hold: seconds(2, 5), alone: true, extra: 2 * time.Second,
			begin: func(ctx context.Context, _ target, _ *rand.Rand) (func(context.Context) error, string, error) {
				if err := c.untilReserved(ctx); err != nil { // at the beginning it would bring back what is there
					return nil, "", err
				}
				return func(ctx context.Context) error { return c.repair(ctx, c.names()...) }, "", c.sql(ctx, c.dump...)
			},
		})
	}
	return faults
}

// takeDump remembers the rows as they are.
func (c *cluster) takeDump(ctx context.Context) error {
	c.dump = nil
	db, err := c.open()
	if err != nil {
		return err
	}
	defer db.Close()
	for _, tag := range c.names() {
		var highest int64
		if err := db.QueryRowContext(ctx, "SELECT max_id FROM leaf_alloc WHERE biz_tag = '"+tag+"'").Scan(&highest); err != nil {
			return fmt.Errorf("read the row of %s: %w", tag, err)
		}
		c.dump = append(c.dump, fmt.Sprintf("UPDATE leaf_alloc SET max_id = %d WHERE biz_tag = '%s'", highest, tag))
	}
	return nil
}

// setStep edits the step of the tag that is there for it.
func (c *cluster) setStep(ctx context.Context, step int) error {
	return c.leaf(ctx, "tag", "set", edited, "--step", strconv.Itoa(step), "--store", c.database().URL())
}
