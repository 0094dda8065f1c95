import SyncModel

/// What a page shows; the layout around it is the renderer's.
struct PageContent: Sendable {
    /// The template, see `Templates`.
    let template: String
    /// Key of the title's words.
    let title: String
    /// Put into the title where it says `%`.
    var detail = ""
    /// The tab that it is under.
    var tab: Tab?
    /// The instance that was chosen.
    var instanceID: InstanceID?
    /// The values of the template, by the names that it uses.
    let content: any Sendable
}

/// The console's tabs, in order (spec C1).
enum Tab: String, CaseIterable, Sendable {
    case overview, configurations, data, devices, service, records

    /// Key of its name's words.
    var word: String { "tab.\(rawValue)" }
}
