// Examples of what TypeScript clients rely on. They must compile with the types that
// openapi-typescript generates from server/openapi.yaml; they are never run.
import type { components, operations, webhooks } from "./openapi.js"

type Commit = components["schemas"]["Commit"]
type Delivery = webhooks["attestation"]["post"]["requestBody"]["content"]["application/json"]
type Event = components["schemas"]["EventPage"]["data"][number]

export const registration: operations["registerCommit"]["requestBody"]["content"]["application/json"] = {
  branch: "feature/x",
  changes: [{ path: "count.go", status: "M" }],
}

export const change: operations["updateWebhook"]["requestBody"]["content"]["application/json"] = { active: true }

export const preview = (overlaps: operations["previewOverlaps"]["responses"][200]["content"]["application/json"]) => overlaps.level === "HIGH"

export const isPromotable = (commit: Commit): boolean => commit.standing === "PROMOTABLE"

export const signatures = (header: webhooks["ping"]["post"]["parameters"]["header"]): string[] => [
  header["X-ledger-Signature"],
  header["X-ledger-Signature-Previous"] ?? "",
  header["webhook-signature"],
]

// An event's type determines its fields.
export function describe(event: Event | Delivery): string {
  switch (event.type) {
    case "attestation":
      return `${event.identity}: ${event.predicate} ${event.result.status}`
    case "state":
      return `${event.from} to ${event.to} by ${event.cause.type}`
    case "standing":
      return `DEPLOYED, standing ${event.to} by ${event.cause.type}`
    case "policy":
      return `policy ${event.version}`
    case "radar":
      return `${event.level} with ${event.other.branch}`
    case "violation":
      return `${event.status}: ${event.predicate} by ${event.identity}`
    case "commit":
      return `${event.commit} has tree ${event.tree ?? 'unknown'}`
    case "key":
      return `${event.purpose} key ${event.key} ${event.action}`
    case "identity":
      return `${event.dn} ${event.action}`
    case "audit":
      return `${event.action} by ${event.by.name}`
  }
}

// The response to several envelopes has an item for each; that to one is its record.
type Recorded = operations["recordAttestation"]["responses"][200]["content"]["application/json"]

export const refused = (response: Recorded): string[] =>
  "data" in response ? response.data.flatMap(item => item.problem?.code ?? []) : []
