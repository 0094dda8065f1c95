import Foundation
import Hummingbird
import SyncModel
import Testing

@testable import Console

@Suite("Console: the gate in front of every route") struct ConsoleGateTests {
    private static let here = InstanceID("here")
    private static let token = SessionToken()

    private static func principal(
        _ grants: [InstanceID: ConsoleRole], _ proof: RequestPrincipal.Proof = .cookie, isConfirmed: Bool = false,
        hasSecondFactor: Bool = false
    ) -> RequestPrincipal {
        RequestPrincipal(
            account: ConsoleAccount(name: "a", grants: grants, hasSecondFactor: hasSecondFactor), token: token,
            proof: proof, isConfirmed: isConfirmed)
    }

    /// All kinds of principals, with their roles at the instance `here` and in the service.
    private static let people:
        [(who: String, principal: RequestPrincipal?, here: ConsoleRole?, service: ConsoleRole?)] = {
            var people: [(String, RequestPrincipal?, ConsoleRole?, ConsoleRole?)] = [("nobody", nil, nil, nil)]
            for role in ConsoleRole.allCases {
                people.append(("\(role) here", principal([here: role]), role, nil))
                people.append(("\(role) elsewhere", principal([InstanceID("there"): role]), nil, nil))
                people.append(("\(role) of the service", principal([ConsoleAccount.everyInstance: role]), role, role))
            }
            return people
        }()

    private static func facts(_ headers: [String: String] = [:]) -> RequestFacts {
        var head = HTTPRequest(method: .post, scheme: "http", authority: "console:7090", path: "/x")
        for (name, value) in headers { if let name = HTTPFields.Element.Name(name) { head.headerFields[name] = value } }
        return RequestFacts(head)
    }

    private static let ours = facts([
        "X-MSS-Form-Token": token.formToken, "Sec-Fetch-Site": "same-origin", "Origin": "http://console:7090",
    ])

    private func refusal(
        _ route: Route, _ facts: RequestFacts, _ principal: RequestPrincipal?, instance: InstanceID? = here,
        rules: EntryRules = EntryRules()
    ) -> ConsoleFault? {
        do throws(ConsoleFault) {
            try RequestAuthorization.check(route, facts, principal, instance: instance, rules: rules)
            return nil
        } catch {
            return error
        }
    }

    @Test("SEC14: role × route: each route admits exactly the sufficient roles at the instance of its path")
    func matrix() {
        let routes = ConsoleRoutes.all
        #expect(routes.count > 60)
        for route in routes {
            let hasInstance = route.pattern.names.contains("instance")
            for person in Self.people {
                let instance = hasInstance ? Self.here : nil
                let mayEnter =
                    switch route.access {
                    case .open: true
                    case .signedIn: person.principal != nil
                    case .instance(let role): hasInstance && (person.here.map { $0 >= role } ?? false)
                    case .service(let role): person.service.map { $0 >= role } ?? false
                    }
                let principal = person.principal.map {
                    RequestPrincipal(account: $0.account, token: $0.token, proof: $0.proof, isConfirmed: true)
                }
                let refusal = refusal(route, Self.ours, principal, instance: instance)
                let expected: ConsoleFault? = mayEnter ? nil : person.principal == nil ? .signedOut : .notAllowed
                #expect(refusal == expected, "\(person.who) at \(route.method) \(route.pattern.text)")
            }
        }
    }

    @Test("SEC14: a route that changes data needs more than a viewer, except for one's own account")
    func changes() {
        let own = ["/api/v1/session", "/api/v1/session/confirm", "/api/v1/invitations"]
        for route in ConsoleRoutes.all where route.method != .get {
            let path = route.pattern.text
            if own.contains(path) || path.hasPrefix("/api/v1/me/") { continue }
            switch route.access {
            case .open, .signedIn: Issue.record("\(path) is for everybody")
            case .instance(let role), .service(let role): #expect(role > .viewer, "\(path)")
            }
        }
    }

    @Test("SEC14: keys, accounts and second factors need the password again")
    func passwords() {
        for route in ConsoleRoutes.all where route.needsPassword {
            let all: [InstanceID: ConsoleRole] = [ConsoleAccount.everyInstance: .administrator]
            #expect(refusal(route, Self.ours, Self.principal(all)) == .passwordNeeded, "\(route.pattern.text)")
            #expect(refusal(route, Self.ours, Self.principal(all, isConfirmed: true)) == nil)
        }
        let asking = Set(ConsoleRoutes.all.filter(\.needsPassword).map { "\($0.method.rawValue) \($0.pattern.text)" })
        let instance = "/api/v1/instances/{instance}"
        #expect(
            asking.isSuperset(of: [
                "POST \(instance)/keys", "DELETE \(instance)/keys/{key}", "POST /api/v1/accounts",
                "PUT /api/v1/accounts/{name}", "DELETE /api/v1/accounts/{name}", "PUT /api/v1/me/second-factor",
                "POST /api/v1/me/second-factor/remove", "POST /api/v1/accounts/{name}/invitation",
                "DELETE \(instance)/configurations/{bizType}", "POST \(instance)/rollouts/widen",
                "POST \(instance)/rollouts/resume",
            ]))
    }

    @Test("SEC13: a change with a browser's cookie needs the form token and a page of this site")
    func origins() throws {
        let route = try #require(
            ConsoleRoutes.all.first { $0.method == .post && $0.access == .service(.administrator) })
        let person = Self.principal([ConsoleAccount.everyInstance: .administrator], isConfirmed: true)
        let token = Self.token.formToken
        let bad: [[String: String]] = [
            [:], ["X-MSS-Form-Token": "0"], ["X-MSS-Form-Token": SessionToken().formToken],
            ["X-MSS-Form-Token": token, "Sec-Fetch-Site": "cross-site"],
            ["X-MSS-Form-Token": token, "Sec-Fetch-Site": "same-site"],
            ["X-MSS-Form-Token": token, "Origin": "http://console:7091"],
            ["X-MSS-Form-Token": token, "Origin": "null"],
        ]
        for headers in bad { #expect(refusal(route, Self.facts(headers), person) == .otherOrigin, "\(headers)") }
        #expect(refusal(route, Self.ours, person) == nil)
        // Also a sign-in: a foreign page could sign a person in to the attacker's account.
        let signIn = try #require(
            ConsoleRoutes.all.first { $0.pattern.text == "/api/v1/session" && $0.access == .open })
        #expect(refusal(signIn, Self.facts(["Sec-Fetch-Site": "cross-site"]), nil) == .otherOrigin)
        #expect(refusal(signIn, Self.facts(), nil) == nil, "a program")
        // A page cannot make a browser send the header of a program.
        let program = Self.principal([ConsoleAccount.everyInstance: .administrator], .bearer, isConfirmed: true)
        #expect(refusal(route, Self.facts(), program) == nil)
    }

    @Test("SEC13: with an origin in the settings a change must come from it, with any Host header")
    func givenOrigin() throws {
        let rules = EntryRules(origin: "https://console.example.com")
        let route = try #require(ConsoleRoutes.all.first { $0.pattern.text == "/api/v1/session" && $0.access == .open })
        func refusal(_ origin: String, site: String = "same-origin") -> ConsoleFault? {
            let facts = Self.facts(["Origin": origin, "Sec-Fetch-Site": site])
            return self.refusal(route, facts, nil, rules: rules)
        }
        #expect(refusal("https://console.example.com") == nil)
        #expect(refusal("HTTPS://Console.example.com") == nil)
        for other in ["http://console:7090", "http://console.example.com", "https://console.example.com.evil", "null"] {
            #expect(refusal(other) == .otherOrigin, "\(other)")
        }
        #expect(refusal("https://console.example.com", site: "cross-site") == .otherOrigin)
    }

    @Test("SEC15: the source is the nearest address that is not our proxy; earlier ones can be false")
    func source() {
        let rules = EntryRules(trustedProxies: ["10.0.0.2", "10.0.0.3"])
        for (peer, forwarded, source) in [
            ("192.0.2.1", nil, "192.0.2.1"), ("192.0.2.1", "198.51.100.7", "192.0.2.1"),
            ("10.0.0.2", nil, "10.0.0.2"), ("10.0.0.2", "198.51.100.7", "198.51.100.7"),
            ("10.0.0.2", "1.1.1.1, 198.51.100.7, 10.0.0.3", "198.51.100.7"), ("10.0.0.2", "10.0.0.3", "10.0.0.2"),
            ("::ffff:10.0.0.2", "2001:db8::1", "2001:db8::1"), ("10.0.0.2", "198.51.100.7, x'--", "10.0.0.2"),
            ("10.0.0.2", "", "10.0.0.2"),
        ] as [(String, String?, String)] {
            #expect(rules.source(peer: peer, forwarded: forwarded) == source, "\(peer) \(forwarded ?? "-")")
        }
        #expect(EntryRules().source(peer: "10.0.0.2", forwarded: "198.51.100.7") == "10.0.0.2")
    }

    @Test(
        "SEC14: where a second factor is required, a changing role without one reaches only its own account"
    )
    func secondFactors() {
        let rules = EntryRules(requiresSecondFactor: true)
        for role in ConsoleRole.allCases {
            for hasSecondFactor in [false, true] {
                let person = Self.principal(
                    [ConsoleAccount.everyInstance: role], isConfirmed: true, hasSecondFactor: hasSecondFactor)
                for route in ConsoleRoutes.all {
                    let isHeld = role > .viewer && !hasSecondFactor && route.access != .open && !route.isOwn
                    let refusal = refusal(route, Self.ours, person, rules: rules)
                    #expect((refusal == .secondFactorNeeded) == isHeld, "\(role) \(route.pattern.text)")
                }
            }
        }
        let own = ConsoleRoutes.all.filter(\.isOwn).map(\.pattern.text)
        #expect(own.contains("/me") && own.contains("/api/v1/me/second-factor") && own.contains("/api/v1/session"))
        #expect(!own.contains("/instances") && !own.contains("/"))
    }

    @Test("SEC13: a session is read from header or cookie, only at the permitted place")
    func sessions() {
        func session(_ headers: [String: String]) -> (token: SessionToken, proof: RequestPrincipal.Proof)? {
            Self.facts(headers).session
        }
        let text = Self.token.text
        #expect(session(["Authorization": "Bearer \(text)"])?.proof == .bearer)
        #expect(session(["Cookie": "a=b; \(SessionCookie.name)=\(text)"])?.proof == .cookie)
        #expect(session(["Cookie": "mss-session=\(text)"]) == nil)
        #expect(session(["Cookie": "\(SessionCookie.name)=\(text.dropLast())"]) == nil)
        #expect(session(["Authorization": "Bearer x", "Cookie": "\(SessionCookie.name)=\(text)"]) == nil)
        #expect(SessionCookie.set(Self.token).1.hasSuffix("; Path=/; Secure; HttpOnly; SameSite=Strict"))
        #expect(SessionCookie.name.hasPrefix("__Host-"))
    }

    @Test("SEC13: after the sign-in the browser goes only to a path of this host, with any link")
    func next() {
        func isOurs(_ path: String) -> Bool { SessionRoutes.isOurs(Array(path.utf8)) }
        for path in ["/", "/instances/a/data?by=user&id=%C3%A4"] { #expect(isOurs(path), "\(path)") }
        for path in [
            "", "x", "//evil", "/\t/evil", "/\\evil", "/\n/evil", "//\u{301}@evil", "/\u{600}\"", "https://evil",
        ] {
            #expect(!isOurs(path), "\(path)")
        }
    }

    @Test("a path is matched part by part, and its named parts are read without their escapes") func patterns() {
        let pattern = RoutePattern("/instances/{instance}/configurations/{bizType}")
        func match(_ path: String) -> [String: String]? {
            pattern.match(path.split(separator: "/", omittingEmptySubsequences: true))
        }
        #expect(match("/instances/a%2Fb/configurations/C-1") == ["instance": "a/b", "bizType": "C-1"])
        #expect(match("/instances/a/configurations") == nil)
        #expect(match("/instances/a/configurations/b/c") == nil)
        #expect(match("/instances/%ff/configurations/b") == nil)
        #expect(
            Paths.page(InstanceID("ä/1 ?"), "x", query: [("a", "b&c"), ("d", nil), ("e", "")])
                == "/instances/%C3%A4%2F1%20%3F/x?a=b%26c")
    }

    @Test("two routes never answer one request") func ambiguity() {
        let routes = ConsoleRoutes.all
        for (index, route) in routes.enumerated() {
            for other in routes[..<index] where other.method == route.method {
                let path = route.pattern.text.replacing("{", with: "").replacing("}", with: "")
                let parts = path.split(separator: "/", omittingEmptySubsequences: true)
                #expect(other.pattern.match(parts) == nil, "\(route.pattern.text) and \(other.pattern.text)")
            }
        }
    }
}
