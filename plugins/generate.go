package plugins

// docs/plugins/catalogue.md is made from the descriptions of the plugins.

//go:generate go test . -count=1 -run ^TestTheCatalogueIsWhatThePluginsSay$ -update
