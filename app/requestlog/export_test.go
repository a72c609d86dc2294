package requestlog

// Open opens the shared log of a config.
var Open = open
