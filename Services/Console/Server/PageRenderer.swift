import Foundation
import Mustache
import ServiceKit
import SyncModel

/// Makes the HTML of a page.
struct PageRenderer: Sendable {
    let directory: ControlDirectory

    /// The whole page.
    func html(_ content: PageContent, for exchange: Exchange) -> String {
        let words = exchange.words
        let account = exchange.visitor?.account
        let instanceID = content.instanceID ?? exchange.chosenInstance(in: directory)?.id
        let layout = Layout(
            t: words.texts, sets: words.sets, language: exchange.language.rawValue,
            title: words.text(content.title, content.detail),
            tabs: instanceID.map { tabs(of: $0, current: content.tab, words) } ?? [],
            choices: account.map { choices(of: $0, instanceID, content.tab ?? .overview) } ?? [],
            instance: instanceID?.text,
            account: account?.name,
            isServiceAdministrator: Access.service(.administrator).allows(account, instance: nil),
            formToken: exchange.visitor?.token.formToken, requestID: exchange.requestID,
            c: content.content)
        return Templates.library.render(layout, withTemplate: content.template) ?? ""
    }

    /// A part of a page by itself, for live updates.
    static func part(_ template: String, _ content: any Sendable, _ words: Words) -> String {
        let layout = Layout(
            t: words.texts, sets: words.sets, language: "", title: "", tabs: [], choices: [], instance: nil,
            account: nil,
            isServiceAdministrator: false, formToken: nil, requestID: "", c: content)
        return Templates.library.render(layout, withTemplate: template) ?? ""
    }

    private func tabs(of instanceID: InstanceID, current: Tab?, _ words: Words) -> [Layout.TabLink] {
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
