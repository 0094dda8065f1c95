import SyncModel

/// What surrounds every page: the values of the layout's template.
struct Layout {
    /// A tab of the bar.
    struct TabLink {
        let name: String
        let address: String
        let isCurrent: Bool
    }

    /// An instance that can be chosen.
    struct Choice {
        let id: String
        let name: String
        let address: String
        let isCurrent: Bool
    }

    /// Words by key.
    let t: [String: String]
    /// Words of closed sets: `sets.role.viewer`.
    let sets: [String: [String: String]]
    let language: String
    let title: String
    let tabs: [TabLink]
    let choices: [Choice]
    let instance: String?
    let account: String?
    let isServiceAdministrator: Bool
    let formToken: String?
    let requestID: String
    /// The page's own values.
    let c: any Sendable
}
