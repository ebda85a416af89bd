package idlog_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf/idlog"
)

// Two clients log the IDs that they received. The checker finds the ID that came twice.
func ExampleCheckSources() {
	var logs []idlog.Source
	for client, ids := range [][]int64{{1, 2, 3, 7}, {4, 5, 7}} {
		var buf bytes.Buffer
		w := idlog.NewWriter(&buf, idlog.Text)
		for _, id := range ids {
			if err := w.ID("orders", id); err != nil {
				fmt.Println(err)
			}
		}
		if err := w.Close(); err != nil {
			fmt.Println(err)
		}
		logs = append(logs, idlog.Bytes(fmt.Sprintf("client%d", client), buf.Bytes()))
	}

	report, err := idlog.CheckSources(context.Background(), idlog.Options{}, logs...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("clean:", report.Clean())
	for _, d := range report.Duplicates {
		fmt.Println(d, d.Places)
	}
	// Output:
	// clean: false
	// orders 7 [client0:2 client1:2]
}
