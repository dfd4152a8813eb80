package cmd

// secretVariable names the signing secret of a webhook; with _FILE behind it, a
// file that holds it.
const secretVariable = "LEDGERD_WEBHOOK_SECRET"
