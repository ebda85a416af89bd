package opaque_test

import (
	"fmt"
	"log"

	"github.com/leaf-idgen/leaf/opaque"
)

// The file is made by "leaf opaque key", once, and given to each program.
func Example() {
	ring, err := opaque.ReadRing("testdata/opaque.keys")
	if err != nil {
		log.Fatal(err)
	}
	orders := ring.Tag("order")
	for id := range int64(3) {
		public, err := orders.Encode(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(id, opaque.Base62.Format(public))
	}
	// Output:
	// 0 2a0PW4pSMId
	// 1 2WcIj0XUyFs
	// 2 1tpao5cfRHF
}
