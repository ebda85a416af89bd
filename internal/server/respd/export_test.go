package respd

// Parse runs the parser over b and returns the arguments of the requests in it, in the
// pieces that end at cuts, and where it stopped.
func Parse(b []byte, limit int, cuts ...int) (requests [][]string, rest int, err error) {
	b = append([]byte(nil), b...)
	p := parser{limit: limit}
	p.reset()
	for _, cut := range append(cuts, len(b)) {
		for {
			size, err := p.next(b[rest:cut])
			if err != nil {
				return requests, rest, err
			}
			if size == 0 {
				break
			}
			request := []string{}
			for _, s := range p.args {
				request = append(request, string(b[rest+s.from:rest+s.to]))
			}
			requests = append(requests, request)
			rest += size
			p.reset()
		}
	}
	return requests, rest, nil
}

// MaxArgs is the limit of the parser.
const MaxArgs = maxArgs
