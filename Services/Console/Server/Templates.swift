import Mustache

/// The templates of the pages, embedded in the binary.
enum Templates {
    /// Templates by name.
    static let texts: [String: [UInt8]] = [
        "layout": PackageResources.layout_mustache,
        "sign-in": PackageResources.sign_in_mustache,
        "choose-password": PackageResources.choose_password_mustache,
        "problem": PackageResources.problem_mustache,
        "overview": PackageResources.overview_mustache,
        "overview-live": PackageResources.overview_live_mustache,
        "overview-figures": PackageResources.overview_figures_mustache,
        "configurations": PackageResources.configurations_mustache,
        "configuration": PackageResources.configuration_mustache,
        "configuration-fields": PackageResources.configuration_fields_mustache,
        "operate": PackageResources.operate_mustache,
        "data": PackageResources.data_mustache,
        "trace": PackageResources.trace_mustache,
        "devices": PackageResources.devices_mustache,
        "device": PackageResources.device_mustache,
        "dead-letters": PackageResources.dead_letters_mustache,
        "operations": PackageResources.operations_mustache,
        "diagnosis": PackageResources.diagnosis_mustache,
        "rollouts": PackageResources.rollouts_mustache,
        "rollout": PackageResources.rollout_mustache,
        "service": PackageResources.service_mustache,
        "instances": PackageResources.instances_mustache,
        "grants": PackageResources.grants_mustache,
        "validator-fields": PackageResources.validator_fields_mustache,
        "new-key": PackageResources.new_key_mustache,
        "records": PackageResources.records_mustache,
        "record": PackageResources.record_mustache,
        "accounts": PackageResources.accounts_mustache,
        "account": PackageResources.account_mustache,
        "me": PackageResources.me_mustache,
        "api": PackageResources.api_mustache,
    ]

    /// The parsed templates. A template with a syntax error is missing; a test checks that none is.
    static let library: MustacheLibrary = {
        ScalarEscaping.register()
        return MustacheLibrary(
            templates: texts.compactMapValues {
                try? MustacheTemplate(string: ScalarEscaping.pragma + String(decoding: $0, as: UTF8.self))
            })
    }()
}

/// HTML escaping of single Unicode scalars (SEC13).
///
/// The library's own escaping compares Swift characters. A combining mark forms one character with a `<` or a quotation
/// mark beside it, so the library would not escape that mark.
struct ScalarEscaping: MustacheContentType {
    /// The first line of every template; an included template needs its own.
    static let pragma = "{{% CONTENT_TYPE:SCALARS }}"

    /// Registers the escaping with the library.
    static func register() { MustacheContentTypes.register(ScalarEscaping(), named: "SCALARS") }

    func escapeText(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "<": escaped.append(contentsOf: "&lt;".unicodeScalars)
            case ">": escaped.append(contentsOf: "&gt;".unicodeScalars)
            case "&": escaped.append(contentsOf: "&amp;".unicodeScalars)
            case "\"": escaped.append(contentsOf: "&quot;".unicodeScalars)
            case "'": escaped.append(contentsOf: "&#39;".unicodeScalars)
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }
}
