package number_test

import (
	"fmt"
	"log"

	"github.com/leaf-idgen/leaf/number"
)

func Example() {
	for _, template := range []string{"INV-{seq:08}", "R{seq:06:crockford}", "{seq:010}-{check:luhn}", "DE{seq:07:36}-{check:mod97}"} {
		orders, err := number.ParseTemplate(template)
		if err != nil {
			log.Fatal(err)
		}
		text, err := orders.Format(1234)
		if err != nil {
			log.Fatal(err)
		}
		id, err := orders.Parse(text)
		fmt.Println(text, id, err)
	}
	_, err := number.ParseTemplate("INV-{seq:8}")
	fmt.Println(err)
	// Output:
	// INV-00001234 1234 <nil>
	// R00016J 1234 <nil>
	// 0000001234-4 1234 <nil>
	// DE00000YA-79 1234 <nil>
	// number: template "INV-{seq:8}": {seq:8}: the width must be a 0 and 1 to 19 digits, such as {seq:08}
}
