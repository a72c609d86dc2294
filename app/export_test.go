package app

// NewOperators binds the operators of a host's matchers.
var NewOperators = newOperators
