package chaos

import (
	"slices"
	"time"
)

// widest is how many buckets a timeline has at the most.
const widest = 300

// series puts the requests of each node into buckets of a second or more.
func series(clients []*client, samples [][]sample, ran time.Duration) Series {
	s := Series{Bucket: max(time.Second, (ran/widest + time.Second - 1).Truncate(time.Second))}
	count := int(ran/s.Bucket) + 1
	latencies := map[*node][][]time.Duration{}
	number := map[*node]int{}
	for i, c := range clients {
		at, found := number[c.node]
		if !found {
			at = len(s.Nodes)
			number[c.node] = at
			s.Nodes = append(s.Nodes, NodeSeries{Name: c.node.name, Buckets: make([]Bucket, count)})
			latencies[c.node] = make([][]time.Duration, count)
		}
		for _, x := range samples[i] {
			j := min(count-1, int(x.due/s.Bucket))
			b := &s.Nodes[at].Buckets[j]
			switch x.outcome {
			case ok:
				b.OK++
			case late:
				b.Late++
			default:
				b.Failed++
				continue
			}
			latencies[c.node][j] = append(latencies[c.node][j], x.latency)
		}
	}
	for n, buckets := range latencies {
		for j, all := range buckets {
			if len(all) == 0 {
				continue
			}
			slices.Sort(all)
			b := &s.Nodes[number[n]].Buckets[j]
			b.P50, b.P99, b.Max = all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
		}
	}
	return s
}
