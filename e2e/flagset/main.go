// Command flagset prints a made-up project as JSON: flags of every shape, cohorts,
// group types, and people with all that clients send about them. The same seed
// prints the same project. Tests with clients in other languages read it.
//
//	go run ./e2e/flagset -seed 7 -flags 150 -people 40
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/guidonhq/guidon/core/flags/flagstest"
)

func main() {
	seed := flag.Uint64("seed", 1, "seed of the generator")
	flagCount := flag.Int("flags", 150, "number of flags")
	people := flag.Int("people", 40, "number of people")
	flag.Parse()
	if err := json.NewEncoder(os.Stdout).Encode(flagstest.GenerateShapes(*seed, *flagCount, *people)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
