package demo

import (
	"fmt"
	"strings"

	"github.com/ledgerd/ledgerd/ledger"
)

// sampleCast returns the names outside a git work tree: of a service that ships parcels.
func sampleCast() cast {
	return cast{
		product: "parcels", people: samplePeople(), tasks: serviceTasks(), files: serviceFiles(),
		test: "test:go", lint: "lint:golangci",
	}
}

func samplePeople() []ledger.Author {
	return []ledger.Author{
		{Name: "Mara Lindqvist", Email: "mara@parcels.example"},
		{Name: "Tomasz Zieliński", Email: "tomasz@parcels.example"},
		{Name: "Ines Duarte", Email: "ines@parcels.example"},
		{Name: "Jonas Weber", Email: "jonas@parcels.example"},
		{Name: "Aiko Tanaka", Email: "aiko@parcels.example"},
		{Name: "Priya Nair", Email: "priya@parcels.example"},
	}
}

func tasksOf(subjects ...string) []task {
	var list []task
	for _, s := range subjects {
		list = append(list, task{subject: s})
	}
	return list
}

// serviceTasks returns what the commits of the first repo do, oldest first.
func serviceTasks() []task {
	return tasksOf(
		"Quote rates for parcels up to 30 kg",
		"Round rates half up, as the carriers do",
		"Label printer: retry when the paper is out",
		"Track parcels by the carrier's own number",
		"Keep zone lookups in memory",
		"Forget a zone when its prices change",
		"Stop charging twice when a payment is retried",

		"Rates: surcharge for islands",
		"Rates: surcharge for bulky parcels",
		"Rates: read zones from the price list",
		"Orders: validate postal codes",
		"Delete the old label format",
		"Labels: print the sender's logo",
		"Say which zone a rate is for",
		"Rates: islands and bulky parcels in one quote",
		"Orders: page through old ones",
		"Tracking mails: name the carrier",
		"Returns: refund to the original card",
		"Returns: accept photos of the damage",
		"Send tracking mails from a queue",
	)
}

func webTasks() []task {
	return tasksOf(
		"Track page: show the parcel on a map",
		"Address form: suggest streets",
		"Returns: upload photos",
		"Checkout: show rates while typing",
		"Track page: larger type on phones",
		"Checkout: pay with a saved card",
		"Format prices by the visitor's language",
	)
}

func deployTasks() []task {
	return tasksOf(
		"Two regions for the API",
		"Open the firewall for the new label printers",
		"Two more workers for the queue",
		"Six workers during the sale",
		"Memory limit of 512 MiB for the workers",
	)
}

func serviceFiles() files {
	f := make(files)
	f["README.md"] = "# Parcels\n\nQuotes, labels and tracking.\n"
	f["go.mod"] = "module parcels.example/parcels\n\ngo 1.26\n"
	for path, functions := range map[string]string{
		"rates/quote.go":   "Quote roundHalfUp surcharge weightClass discount total bulky islands currency explain",
		"rates/zones.go":   "ZoneOf loadZones parseZone cacheZone neighbours",
		"labels/format.go": "Format header footer barcode escape legacyFormat width",
		"labels/print.go":  "Print spool retry status cancel",
		"track/track.go":   "Track lookup merge newest carrierOf",
		"track/mail.go":    "SendMail subjectLine render enqueue",
		"orders/orders.go": "Create validate postalCode find cancel list",
		"store/orders.go":  "insertOrder updateOrder selectOrders scanOrder",
		"returns/claim.go": "Claim attachPhoto refund notify",
		"cmd/main.go":      "main",
	} {
		f[path] = goFile(path, functions)
	}
	return f
}

// goFile returns a file with some functions of 18 lines.
func goFile(path, functions string) string {
	folder, _, _ := strings.Cut(path, "/")
	text := fmt.Sprintf("package %s\n\nimport \"context\"\n", folder)
	for name := range strings.FieldsSeq(functions) {
		text += fmt.Sprintf("\nfunc %s(ctx context.Context, p Parcel) (err error) {\n", name)
		for i, step := range []string{"read", "check", "convert", "record", "publish"} {
			text += fmt.Sprintf("\tif err = %s(ctx, p, %q, %d); err != nil {\n\t\treturn err\n\t}\n", step, name, i)
		}
		text += "\treturn nil\n}\n"
	}
	return text
}

func webFiles() files {
	f := files{"package.json": "{\n  \"name\": \"parcels-web\",\n  \"private\": true\n}\n"}
	for path, functions := range map[string]string{
		"src/pages/Track.tsx":           "Track useParcel statusText mapUrl",
		"src/pages/Checkout.tsx":        "Checkout useRates payButton savedCards",
		"src/pages/Returns.tsx":         "Returns photoList upload",
		"src/components/Map.tsx":        "Map marker fit zoom",
		"src/components/Address.tsx":    "Address suggest pick clear",
		"src/lib/format.ts":             "price date weight distance",
		"e2e/checkout.spec.ts":          "paysByCard paysLater showsRates",
		"styles/theme.css.ts":           "colours type spacing",
		"public/locales/messages.ts":    "german polish portuguese",
		"config/vite.ts":                "plugins server build",
		"src/lib/internal/transport.ts": "get post retry cancel",
	} {
		text := "import { h } from 'preact'\n"
		for name := range strings.FieldsSeq(functions) {
			text += fmt.Sprintf("\nexport function %s(props: Props) {\n", name)
			for i := range 14 {
				text += fmt.Sprintf("  const part%d = props.parts[%d] ?? %s.defaults[%d]\n", i, i, name, i)
			}
			text += "  return h(Fragment, props)\n}\n"
		}
		f[path] = text
	}
	return f
}

func deployFiles() files {
	f := files{"README.md": "# Deployment\n\nOne folder per environment.\n"}
	for _, environment := range []string{"prod", "staging"} {
		text := "region: eu-north-1\n"
		for _, service := range []string{"api", "web", "workers", "printer-gateway"} {
			text += fmt.Sprintf("\n%s:\n  image: registry.parcels.example/%[1]s\n  replicas: 3\n", service)
			for _, key := range []string{"cpu", "memory", "probe", "port", "budget", "surge", "grace", "zone"} {
				text += fmt.Sprintf("  %s: %d\n", key, len(key)*len(service))
			}
		}
		f[environment+"/values.yaml"] = text
		f[environment+"/firewall.yaml"] = strings.ReplaceAll(text, "image", "allow")
	}
	for _, name := range []string{"network", "database", "dns", "queue"} {
		f[name+"/main.tf"] = strings.Repeat(fmt.Sprintf("resource \"parcels_%s\" \"main\" {\n  size = 3\n}\n\n", name), 12)
	}
	return f
}
