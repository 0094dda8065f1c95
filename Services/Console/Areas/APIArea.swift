/// The JSON API's description, for programs and for people (spec C11).
struct APIArea: Sendable {
    /// Every other route.
    let routes: [Route]

    /// A call, as the page lists it.
    struct Call: Sendable {
        let method: String
        let path: String
        let summary: String
        let access: String
        let needsPassword: Bool
        let inputs: [Member]
        let queries: [Member]
        let hasMembers: Bool
    }

    /// A member of a body, or a name in the query.
    struct Member: Sendable {
        let name: String
        let form: String
        let isRequired: Bool
        let words: String
    }

    /// The page.
    struct Page: Sendable { let calls: [Call] }

    /// Those of the description itself.
    var own: [Route] {
        let document = APIDescription.document(of: routes)
        let page = Page(calls: routes.filter(\.isAPI).map(Self.call))
        return [
            Route(method: .get, pattern: RoutePattern("/openapi.json"), access: .signedIn, summary: "OpenAPI.") {
                _ throws(ConsoleFault) in
                ConsoleAnswer(body: .bytes(document, type: "application/json; charset=utf-8"))
            },
            Route(method: .get, pattern: RoutePattern("/api"), access: .signedIn, summary: "The API's page.") {
                _ throws(ConsoleFault) in .page(PageContent(template: "api", title: "title.api", content: page))
            },
        ]
    }

    private static func call(_ route: Route) -> Call {
        let (inputs, queries) = (route.inputs.map(member), route.queries.map(member))
        return Call(
            method: route.method.rawValue, path: route.pattern.text, summary: route.summary,
            access: route.access.words, needsPassword: route.needsPassword, inputs: inputs, queries: queries,
            hasMembers: !inputs.isEmpty || !queries.isEmpty)
    }

    private static func member(_ input: RouteInput) -> Member {
        Member(name: input.name, form: input.form.rawValue, isRequired: input.isRequired, words: input.words)
    }
}
