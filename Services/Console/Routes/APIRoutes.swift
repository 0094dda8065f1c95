import Foundation

/// The description of the JSON API: a document for programs and a page for people (C11).
struct APIRoutes: Sendable {
    /// All other routes.
    let routes: [Route]

    /// A call of the API, for the page.
    struct Call: Sendable {
        let method: String
        let path: String
        let summary: String
        let access: String
        let needsPassword: Bool
        let inputs: [Member]
        let queries: [Member]
        let hasMembers: Bool
        /// An example of the answer, as JSON; nil when the answer is empty or not JSON.
        let answer: String?
    }

    /// A member of a body or a parameter of a query.
    struct Member: Sendable {
        let name: String
        let form: String
        let isRequired: Bool
        let words: String
    }

    /// The page.
    struct Page: Sendable {
        let calls: [Call]
        /// The first two calls of a program.
        let example = """
            curl -s http://127.0.0.1:7090/api/v1/session -H 'Content-Type: application/json' \\
              -d '{"name":"…","password":"…"}'
            curl -s http://127.0.0.1:7090/api/v1/instances -H 'Authorization: Bearer …'
            """
    }

    /// The routes of the description.
    var own: [Route] {
        let document = APIDescription.document(of: routes)
        let pages = Dictionary(
            uniqueKeysWithValues: Language.allCases.map { language in
                (language, Page(calls: routes.filter(\.isAPI).map { Self.call($0, language) }))
            })
        return [
            Route(method: .get, pattern: RoutePattern("/openapi.json"), access: .signedIn, summary: "OpenAPI.") {
                _ throws(ConsoleFault) in
                ConsoleAnswer(body: .bytes(document, type: "application/json; charset=utf-8"))
            },
            Route(method: .get, pattern: RoutePattern("/api"), access: .signedIn, summary: "The API's page.") {
                request throws(ConsoleFault) in
                let page = pages[request.language] ?? Page(calls: [])
                return .page(PageContent(template: "api", title: "title.api", content: page))
            },
        ]
    }

    private static func call(_ route: Route, _ language: Language) -> Call {
        let inputs = route.inputs.map { member($0, language) }
        let queries = route.queries.map { member($0, language) }
        return Call(
            method: route.method.rawValue, path: route.pattern.text,
            summary: SentenceTranslations.text(route.summary, in: language),
            access: SentenceTranslations.text(route.access.words, in: language), needsPassword: route.needsPassword,
            inputs: inputs, queries: queries, hasMembers: !inputs.isEmpty || !queries.isEmpty,
            answer: route.example.flatMap(text))
    }

    private static func text(of example: any Encodable) -> String? {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(example)).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func member(_ input: RouteInput, _ language: Language) -> Member {
        Member(
            name: input.name, form: PageTexts.of(language).text("form.\(input.form.rawValue)"),
            isRequired: input.isRequired,
            words: SentenceTranslations.text(input.words, in: language))
    }
}
