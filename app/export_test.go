package app

// NewOperators is who answers for the operators of a host's matchers.
var NewOperators = newOperators
