/// How the tenant of an instance is asked about sessions (spec V2).
package enum ValidatorForm: Hashable, Sendable {
    /// The three members as JSON, posted to the tenant's URL.
    case http
    /// Through an mPaaS mobile gateway, whose URL ends in `/mgw.htm`.
    case mobileGateway(MobileGateway)

    /// What a mobile gateway wants to know of the app beside the question.
    package struct MobileGateway: Hashable, Sendable {
        package var appID: String
        package var workspaceID: String
        /// The question stands under `_requestBody`, as gateways want it whose operation takes one body.
        package var wrapsBody: Bool

        package init(appID: String, workspaceID: String, wrapsBody: Bool = false) {
            self.appID = appID
            self.workspaceID = workspaceID
            self.wrapsBody = wrapsBody
        }
    }

    /// What is wrong with it, for whoever wants to store it; nil when it can be.
    var fault: String? {
        guard case .mobileGateway(let gateway) = self else { return nil }
        for (name, value) in [("app id", gateway.appID), ("workspace id", gateway.workspaceID)] {
            guard (1...Limits.linkTokenUnits).contains(value.utf16.count),
                value.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
            else { return "a mobile gateway's \(name) has 1 to \(Limits.linkTokenUnits) visible ASCII characters" }
        }
        return nil
    }
}
