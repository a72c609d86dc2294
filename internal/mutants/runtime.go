package main

// The variables that the helpers of a mutated package read.
const (
	variableMutant  = "GUIDON_MUTANT"          // number of the mutant that is on
	variableReached = "GUIDON_MUTANTS_REACHED" // file for the numbers of mutants that are reached
)

// helpers is the file that is added to a mutated package, after its package clause.
const helpers = `

import (
	mutantsOS "os"
	mutantsStrconv "strconv"
	mutantsAtomic "sync/atomic"
)

var mutantActive, mutantsReached = startMutants()

var mutantsSeen [numberOfMutants + 1]mutantsAtomic.Bool

func startMutants() (int, *mutantsOS.File) {
	active, _ := mutantsStrconv.Atoi(mutantsOS.Getenv("` + variableMutant + `"))
	name := mutantsOS.Getenv("` + variableReached + `")
	if name == "" {
		return active, nil
	}
	file, err := mutantsOS.OpenFile(name, mutantsOS.O_CREATE|mutantsOS.O_APPEND|mutantsOS.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return active, file
}

func mutantOn(id int) bool {
	if mutantsReached != nil {
		reachMutant(id)
	}
	return id == mutantActive
}

func reachMutant(id int) {
	if mutantsSeen[id].Load() || mutantsSeen[id].Swap(true) {
		return
	}
	mutantsReached.Write(append(mutantsStrconv.AppendInt(nil, int64(id), 10), '\n'))
}

type mutantInteger interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

type mutantNumber interface {
	mutantInteger | ~float32 | ~float64
}

type mutantOrdered interface {
	mutantNumber | ~string
}

func mutantLess[T mutantOrdered](id int, a, b T) bool {
	if mutantOn(id) {
		return a <= b
	}
	return a < b
}

func mutantLessOrEqual[T mutantOrdered](id int, a, b T) bool {
	if mutantOn(id) {
		return a < b
	}
	return a <= b
}

func mutantGreater[T mutantOrdered](id int, a, b T) bool {
	if mutantOn(id) {
		return a >= b
	}
	return a > b
}

func mutantGreaterOrEqual[T mutantOrdered](id int, a, b T) bool {
	if mutantOn(id) {
		return a > b
	}
	return a >= b
}

func mutantAdd[T mutantNumber](id int, a, b T) T {
	if mutantOn(id) {
		return a - b
	}
	return a + b
}

func mutantSubtract[T mutantNumber](id int, a, b T) T {
	if mutantOn(id) {
		return a + b
	}
	return a - b
}

func mutantMultiply[T mutantNumber](id int, a, b T) T {
	if mutantOn(id) {
		return a / b
	}
	return a * b
}

func mutantDivide[T mutantNumber](id int, a, b T) T {
	if mutantOn(id) {
		return a * b
	}
	return a / b
}

func mutantRemainder[T mutantInteger](id int, a, b T) T {
	if mutantOn(id) {
		return a * b
	}
	return a % b
}

func mutantAnd[T mutantInteger](id int, a, b T) T {
	if mutantOn(id) {
		return a | b
	}
	return a & b
}

func mutantOr[T mutantInteger](id int, a, b T) T {
	if mutantOn(id) {
		return a & b
	}
	return a | b
}

func mutantMinus[T mutantNumber](id int, a T) T {
	if mutantOn(id) {
		return a
	}
	return -a
}
`
