import Foundation
import Mustache
import ServiceKit
import SyncModel

/// Renders pages as HTML.
struct PageRenderer: Sendable {
    let directory: ControlDirectory

    /// Renders a page with its layout.
    func html(_ content: PageContent, for request: ConsoleRequest) -> String {
        let words = request.words
        let account = request.principal?.account
        let instanceID = content.instanceID ?? request.chosenInstance(in: directory)?.id
        let layout = Layout(
            t: words.texts, sets: words.sets, language: request.language.rawValue,
            title: words.text(content.title, content.detail),
            tabs: instanceID.map { tabs(of: $0, current: content.tab, words) } ?? [],
            choices: account.map { choices(of: $0, instanceID, content.tab ?? .overview) } ?? [],
            instance: instanceID?.text,
            account: account?.name,
            isServiceAdministrator: Access.service(.administrator).allows(account, instance: nil),
            formToken: request.principal?.token.formToken, requestID: request.requestID,
            c: content.content)
        return Templates.library.render(layout, withTemplate: content.template) ?? ""
    }

    /// Renders a template without the layout, for live updates.
    static func part(_ template: String, _ content: any Sendable, _ words: PageTexts) -> String {
        let layout = Layout(
            t: words.texts, sets: words.sets, language: "", title: "", tabs: [], choices: [], instance: nil,
            account: nil,
            isServiceAdministrator: false, formToken: nil, requestID: "", c: content)
        return Templates.library.render(layout, withTemplate: template) ?? ""
    }

    private func tabs(of instanceID: InstanceID, current: Tab?, _ words: PageTexts) -> [Layout.TabLink] {
        Tab.allCases.map { tab in
            Layout.TabLink(
                name: words.text(tab.word), address: Paths.page(instanceID, tab.rawValue), isCurrent: tab == current)
        }
    }

    private func choices(of account: ConsoleAccount, _ chosen: InstanceID?, _ tab: Tab) -> [Layout.Choice] {
        directory.instances.filter { account.role(at: $0.id) != nil }.map { instance in
            Layout.Choice(
                id: instance.id.text, name: instance.name, address: Paths.page(instance.id, tab.rawValue),
                isCurrent: instance.id == chosen)
        }
    }
}

/// The content of a page; `PageRenderer` adds the layout.
struct PageContent: Sendable {
    /// The name of the template; see `Templates`.
    let template: String
    /// The key of the title's text.
    let title: String
    /// Replaces `%` in the title.
    var detail = ""
    /// The page's tab.
    var tab: Tab?
    /// The page's instance.
    var instanceID: InstanceID?
    /// The values of the template.
    let content: any Sendable
}

/// The console's tabs, in order (C1).
enum Tab: String, CaseIterable, Sendable {
    case overview, configurations, data, devices, service, records

    /// The key of the tab's text.
    var word: String { "tab.\(rawValue)" }
}

/// The values of the template `layout`, which surrounds every page.
private struct Layout {
    /// A tab of the bar.
    struct TabLink {
        let name: String
        let address: String
        let isCurrent: Bool
    }

    /// An instance that the account can choose.
    struct Choice {
        let id: String
        let name: String
        let address: String
        let isCurrent: Bool
    }

    /// Texts by key.
    let t: [String: String]
    /// Texts of closed sets: `sets.role.viewer`.
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
